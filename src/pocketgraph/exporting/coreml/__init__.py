"""Core ML packages (.mlpackage): what the ONNX exporter makes of a graph, in Core ML's operators."""
