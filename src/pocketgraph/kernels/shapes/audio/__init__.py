"""Shape rules of sound."""
