"""Shape rules of optimizers."""
