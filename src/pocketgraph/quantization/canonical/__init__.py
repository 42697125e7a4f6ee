"""Canonical form: what a graph spells out around its layers becomes part of them."""
