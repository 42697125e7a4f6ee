"""What runs a LiteRT model file: packed or plain, with holes for weights, in parts of a batch, or somebody else's."""
