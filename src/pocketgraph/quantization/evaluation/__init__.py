"""Evaluation: models on data, beside each other and beside the truth."""
