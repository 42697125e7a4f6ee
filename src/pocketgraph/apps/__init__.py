"""What a program brings to a model (pictures, recordings, tables, labels), and what it makes of the scores."""
