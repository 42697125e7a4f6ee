"""Which Core ML operators an ONNX operator becomes, a module a family."""
