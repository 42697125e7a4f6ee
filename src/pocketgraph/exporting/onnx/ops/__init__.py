"""Which ONNX operators a node becomes, a module a family."""
