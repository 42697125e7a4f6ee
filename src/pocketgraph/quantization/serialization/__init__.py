"""Serialization: a program as the bytes of a .tflite file, in the forms that LiteRT runs fastest."""
