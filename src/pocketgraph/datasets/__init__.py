"""Samples for models: pictures, recordings, tables and arrays, as a model takes them, and their classes."""
