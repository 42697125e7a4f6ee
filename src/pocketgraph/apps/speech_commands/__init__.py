"""What TensorFlow's example of spoken words has beside its models: features as C, and recordings to test with."""
