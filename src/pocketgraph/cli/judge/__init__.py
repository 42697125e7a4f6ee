"""Commands that measure a model."""
