package org.tensorflow.lite;

import java.io.BufferedInputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.Map;
import org.checkerframework.checker.nullness.qual.NonNull;

/** Stands for LiteRT's: its checks, messages and copies of buffers, around LiteRT in a process of Python. */
class InterpreterImpl implements AutoCloseable {
  static class Options {
    int threads = 1;
  }

  private record Known(
      String name, int index, DataType dataType, QuantizationParams quantizationParams, int[] shape, int[] shapeSignature)
      implements Tensor {
    @Override
    public int numElements() {
      return Arrays.stream(shape).reduce(1, (a, b) -> a * b);
    }

    @Override
    public int numBytes() {
      return numElements() * dataType.byteSize();
    }
  }

  private final Process process;
  private final DataOutputStream to;
  private final DataInputStream from;
  private Known[] inputs;
  private Known[] outputs;
  private final Map<String, Map<String, Integer>> signatureInputs = new LinkedHashMap<>();
  private final Map<String, Map<String, Integer>> signatureOutputs = new LinkedHashMap<>();
  private boolean isAllocated = false;

  InterpreterImpl(ByteBuffer model, Options options) {
    if (!model.isDirect() || model.order() != ByteOrder.nativeOrder() && !(model instanceof java.nio.MappedByteBuffer)) {
      throw new IllegalArgumentException(
          "Model ByteBuffer should be either a MappedByteBuffer of the model file, or a direct ByteBuffer using "
              + "ByteOrder.nativeOrder() which contains bytes of model content.");
    }
    byte[] content = new byte[model.capacity()];
    model.duplicate().rewind().get(content);
    process = started();
    to = new DataOutputStream(process.getOutputStream());
    from = new DataInputStream(new BufferedInputStream(process.getInputStream()));
    try {
      to.writeInt(options == null ? 1 : options.threads);
      to.writeInt(content.length);
      to.write(content);
      answer(new byte[0][]);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    } catch (IllegalArgumentException e) {
      close();
      throw new IllegalArgumentException("ByteBuffer is not a valid TensorFlow Lite model flatbuffer", e);
    }
    allocateTensors();
  }

  private static Process started() {
    try {
      return new ProcessBuilder(System.getProperty("python"), System.getProperty("litert_process"))
          .redirectError(ProcessBuilder.Redirect.INHERIT).start();
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  public void runForMultipleInputsOutputs(@NonNull Object[] given, @NonNull Map<Integer, Object> wanted) {
    if (given == null || given.length == 0) {
      throw new IllegalArgumentException("Input error: Inputs should not be null or empty.");
    }
    if (given.length > inputs.length) {
      throw new IllegalArgumentException("Input error: Invalid input Tensor index: " + inputs.length);
    }
    if (!isAllocated) {
      allocateTensors();
    }
    for (int i = 0; i < given.length; i++) {
      if (given[i] == null) {
        throw new IllegalArgumentException("Null inputs are allowed only if the Tensor is bound to a buffer handle.");
      }
      int bytes = ((ByteBuffer) given[i]).capacity();
      if (bytes != inputs[i].numBytes()) {
        throw new IllegalArgumentException(String.format(
            "Cannot copy to a TensorFlowLite tensor (%s) with %d bytes from a Java Buffer with %d bytes.",
            inputs[i].name(), inputs[i].numBytes(), bytes));
      }
    }
    byte[][] results = new byte[outputs.length][];
    try {
      to.writeInt(3);
      for (Object buffer : given) {
        ByteBuffer source = (ByteBuffer) buffer;
        byte[] content = new byte[source.capacity()];
        if (source.isDirect() && source.order() == ByteOrder.nativeOrder()) {
          source.duplicate().clear().get(content); // the whole memory, wherever its position is
        } else {
          source.get(content);
        }
        to.writeInt(content.length);
        to.write(content);
      }
      answer(results);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
    for (Map.Entry<Integer, Object> entry : wanted.entrySet()) {
      ByteBuffer buffer = (ByteBuffer) entry.getValue();
      byte[] content = results[entry.getKey()];
      if (content.length > buffer.capacity()) {
        throw new IllegalArgumentException(String.format(
            "Cannot copy from a TensorFlowLite tensor (%s) with %d bytes to a Java Buffer with %d bytes.",
            outputs[entry.getKey()].name(), content.length, buffer.capacity()));
      }
      buffer.put(content);
    }
  }

  public void allocateTensors() {
    command(2);
    isAllocated = true;
  }

  public void resizeInput(int place, int @NonNull [] sizes) {
    if (place < 0 || place >= inputs.length) {
      throw new IllegalArgumentException("Input error: Invalid input Tensor index: " + place);
    }
    if (Arrays.equals(inputs[place].shape(), sizes)) {
      return;
    }
    int[] words = new int[3 + sizes.length];
    words[0] = 1;
    words[1] = place;
    words[2] = sizes.length;
    System.arraycopy(sizes, 0, words, 3, sizes.length);
    command(words);
    isAllocated = false;
  }

  public int getInputTensorCount() {
    return inputs.length;
  }

  public int getOutputTensorCount() {
    return outputs.length;
  }

  public Tensor getInputTensor(int place) {
    return inputs[place];
  }

  public Tensor getOutputTensor(int place) {
    return outputs[place];
  }

  public String[] getSignatureKeys() {
    return signatureInputs.keySet().toArray(new String[0]);
  }

  public String[] getSignatureInputs(String key) {
    return signatureInputs.get(key).keySet().toArray(new String[0]);
  }

  public String[] getSignatureOutputs(String key) {
    return signatureOutputs.get(key).keySet().toArray(new String[0]);
  }

  public Tensor getInputTensorFromSignature(String name, String key) {
    return of(inputs, signatureInputs.get(key).get(name));
  }

  public Tensor getOutputTensorFromSignature(String name, String key) {
    return of(outputs, signatureOutputs.get(key).get(name));
  }

  private static Tensor of(Known[] tensors, int index) {
    return Arrays.stream(tensors).filter(tensor -> tensor.index() == index).findFirst().orElseThrow();
  }

  @Override
  public void close() {
    process.destroy();
  }

  private void command(int... words) {
    try {
      for (int word : words) {
        to.writeInt(word);
      }
      answer(new byte[0][]);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  private void answer(byte[][] results) throws IOException {
    to.flush();
    if (from.readByte() != 0) {
      throw new IllegalArgumentException("Internal error: " + text());
    }
    for (int i = 0; i < results.length; i++) {
      results[i] = from.readNBytes(from.readInt());
    }
    inputs = tensors();
    outputs = tensors();
    for (int count = from.readInt(); count > 0; count--) {
      String key = text();
      signatureInputs.put(key, places());
      signatureOutputs.put(key, places());
    }
  }

  private Known[] tensors() throws IOException {
    Known[] found = new Known[from.readInt()];
    for (int i = 0; i < found.length; i++) {
      found[i] = new Known(text(), from.readInt(), DataType.values()[from.readInt()],
          new Tensor.QuantizationParams(from.readFloat(), from.readInt()), numbers(), numbers());
    }
    return found;
  }

  private Map<String, Integer> places() throws IOException {
    Map<String, Integer> found = new LinkedHashMap<>();
    for (int count = from.readInt(); count > 0; count--) {
      found.put(text(), from.readInt());
    }
    return found;
  }

  private int[] numbers() throws IOException {
    int[] found = new int[from.readInt()];
    for (int i = 0; i < found.length; i++) {
      found[i] = from.readInt();
    }
    return found;
  }

  private String text() throws IOException {
    return new String(from.readNBytes(from.readInt()), StandardCharsets.UTF_8);
  }
}
