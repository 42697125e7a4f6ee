"""Numbers drawn by chance, as TensorFlow's generators draw them."""
