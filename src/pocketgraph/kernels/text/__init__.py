"""Strings: joined, cut, searched, hashed, decoded."""
