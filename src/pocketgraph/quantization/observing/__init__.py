"""Calibration: which values each tensor takes over the samples, and what is odd about them."""
