"""LiteRT's C library, called directly."""
