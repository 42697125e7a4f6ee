"""Commands that run a model on pictures, recordings and texts."""
