"""ONNX models: a graph in ONNX's operators, its loops and branches included."""
