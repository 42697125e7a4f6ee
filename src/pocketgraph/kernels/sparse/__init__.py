"""Sparse and ragged tensors, sets, feature crosses."""
