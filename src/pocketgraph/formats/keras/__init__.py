"""Models of Keras layers as graphs of TensorFlow's ops, their weights as constants."""
