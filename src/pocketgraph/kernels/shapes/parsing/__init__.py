"""Shape rules of encoded records."""
