"""What fold_constants is made of: the graph as it would be run, which of its nodes are constant, their values."""
