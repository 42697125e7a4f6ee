"""Commands that make a model of data."""
