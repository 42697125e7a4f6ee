"""A folder of photos looked through before a model is trained on it, and made anew as was decided."""
