"""Lowerings of images: resized, and their colours changed."""
