"""What runs a graph: the exact reference engine, and LiteRT for the parts that it can hold."""
