"""What fake_quantize_training is made of: the ranges of inputs, their rounding, and the Saver's part in it."""
