"""Loops of known length, written out before planning."""
