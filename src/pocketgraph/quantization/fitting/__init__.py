"""Weights: codes chosen by what they do to a layer's results."""
