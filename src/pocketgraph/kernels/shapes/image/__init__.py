"""Shape rules of pictures and boxes."""
