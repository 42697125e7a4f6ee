package org.tensorflow.lite;

/** As LiteRT's. */
public enum DataType {
  FLOAT32(4),
  INT32(4),
  UINT8(1),
  INT64(8),
  STRING(-1),
  BOOL(1),
  INT16(2),
  INT8(1);

  private final int bytes;

  DataType(int bytes) {
    this.bytes = bytes;
  }

  public int byteSize() {
    return bytes;
  }
}
