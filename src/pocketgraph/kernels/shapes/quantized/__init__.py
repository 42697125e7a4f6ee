"""Shape rules of quantized tensors."""
