"""Graphs that train, on their way out: variables as values that come in and go out, and the check."""
