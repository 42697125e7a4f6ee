"""A program as a LiteRT file: its tables, their numbers, and the bytes."""
