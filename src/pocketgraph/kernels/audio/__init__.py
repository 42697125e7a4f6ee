"""Sound: WAV files, spectrograms, features for small speech models."""
