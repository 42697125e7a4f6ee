"""Passes over graphs that freezing, the transform rules and the planning of sessions share; one idea a file."""
