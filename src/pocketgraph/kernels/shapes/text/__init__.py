"""Shape rules of strings."""
