"""Rewritings of a program in LiteRT's terms: fewer, simpler, wider and eight-bit operations."""
