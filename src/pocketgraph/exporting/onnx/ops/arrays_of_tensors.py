"""Placeholder while the family is written."""
