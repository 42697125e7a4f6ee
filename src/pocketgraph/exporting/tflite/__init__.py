"""LiteRT files: programs with signatures, and the metadata that the task libraries read."""
