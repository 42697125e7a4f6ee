"""Lowerings of simulated quantization."""
