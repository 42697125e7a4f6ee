package org.tensorflow.lite;

/** As LiteRT's, as far as it is called. */
public interface Tensor {
  DataType dataType();

  int[] shape();

  int[] shapeSignature();

  int numBytes();

  int index();

  String name();
}
