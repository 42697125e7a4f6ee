"""Programs that serve calls of several sizes."""
