package org.tensorflow.lite;

import java.nio.ByteBuffer;
import java.util.Map;

/** Stands for LiteRT's: a model x [?, 2] and k int32 [1], of which y is x times k and n is k as int64. */
public final class Interpreter implements AutoCloseable {
  private int rows = 1;

  /** As LiteRT's. */
  public static final class Options {
    public Options setNumThreads(int threads) {
      return this;
    }
  }

  private final class Fake implements Tensor {
    private final String name;
    private final int index;
    private final DataType type;

    Fake(String name, int index, DataType type) {
      this.name = name;
      this.index = index;
      this.type = type;
    }

    @Override
    public DataType dataType() {
      return type;
    }

    @Override
    public int[] shape() {
      return type == DataType.FLOAT32 ? new int[] {rows, 2} : new int[] {1};
    }

    @Override
    public int[] shapeSignature() {
      return type == DataType.FLOAT32 ? new int[] {-1, 2} : new int[] {1};
    }

    @Override
    public int numBytes() {
      return type == DataType.FLOAT32 ? 8 * rows : type == DataType.INT64 ? 8 : 4;
    }

    @Override
    public int index() {
      return index;
    }

    @Override
    public String name() {
      return name;
    }
  }

  private final Tensor[] in = {new Fake("serving_default_k:0", 4, DataType.INT32), new Fake("x", 5, DataType.FLOAT32)};
  private final Tensor[] out = {new Fake("scope/y", 6, DataType.FLOAT32), new Fake("n", 7, DataType.INT64)};

  public Interpreter(ByteBuffer model, Options options) {
    if (model.remaining() != 3) {
      throw new IllegalArgumentException("not a valid flatbuffer");
    }
  }

  public int getInputTensorCount() {
    return in.length;
  }

  public int getOutputTensorCount() {
    return out.length;
  }

  public Tensor getInputTensor(int place) {
    return in[place];
  }

  public Tensor getOutputTensor(int place) {
    return out[place];
  }

  public String[] getSignatureKeys() {
    return new String[] {"serving_default"};
  }

  public String[] getSignatureInputs(String key) {
    return new String[] {"x", "k"};
  }

  public String[] getSignatureOutputs(String key) {
    return new String[] {"y", "n"};
  }

  public Tensor getInputTensorFromSignature(String name, String key) {
    return name.equals("k") ? in[0] : in[1];
  }

  public Tensor getOutputTensorFromSignature(String name, String key) {
    return name.equals("y") ? out[0] : out[1];
  }

  public void resizeInput(int place, int[] sizes) {
    if (place == 1) {
      rows = sizes[0];
    }
  }

  public void allocateTensors() {}

  public void runForMultipleInputsOutputs(Object[] inputs, Map<Integer, Object> outputs) {
    int k = ((ByteBuffer) inputs[0]).getInt(0);
    ByteBuffer x = (ByteBuffer) inputs[1];
    if (outputs.containsKey(0)) {
      for (int i = 0; i < 2 * rows; i++) {
        ((ByteBuffer) outputs.get(0)).putFloat(4 * i, k * x.getFloat(4 * i));
      }
    }
    if (outputs.containsKey(1)) {
      ((ByteBuffer) outputs.get(1)).putLong(0, k);
    }
  }

  @Override
  public void close() {}
}
