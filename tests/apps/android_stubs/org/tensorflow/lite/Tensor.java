package org.tensorflow.lite;

/** As LiteRT's, as far as it is called. */
public interface Tensor {
  DataType dataType();

  int[] shape();

  int[] shapeSignature();

  int numElements();

  int numBytes();

  int index();

  String name();

  QuantizationParams quantizationParams();

  /** As LiteRT's; a scale of 0 where there are no codes. */
  class QuantizationParams {
    private final float scale;
    private final int zeroPoint;

    public QuantizationParams(float scale, int zeroPoint) {
      this.scale = scale;
      this.zeroPoint = zeroPoint;
    }

    public float getScale() {
      return scale;
    }

    public int getZeroPoint() {
      return zeroPoint;
    }
  }
}
