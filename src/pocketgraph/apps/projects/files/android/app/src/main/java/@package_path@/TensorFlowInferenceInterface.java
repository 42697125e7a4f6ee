package @package@;

import android.content.res.AssetManager;
import android.util.Log;
import java.io.ByteArrayOutputStream;
import java.io.FileInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.nio.Buffer;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.DoubleBuffer;
import java.nio.FloatBuffer;
import java.nio.IntBuffer;
import java.nio.LongBuffer;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import org.tensorflow.Graph;
import org.tensorflow.Operation;
import org.tensorflow.lite.DataType;
import org.tensorflow.lite.Interpreter;
import org.tensorflow.lite.Tensor;

/**
 * The calls of TensorFlow Mobile's class of this name, over LiteRT: feed, run and fetch, and the older fillNode…,
 * runInference and readNode….
 *
 * <p>Tensors have the names of the graph that the file was made from, {@code node} or {@code node:index}. What is fed is
 * copied, and gone after {@link #run}; an output is fetched under just the name that was given to run. One thread at a time may
 * use it.
 */
public class TensorFlowInferenceInterface implements AutoCloseable {
  private static final String TAG = "TensorFlowInferenceInterface";
  private static final String ASSET_FILE_PREFIX = "file:///android_asset/";
  private static final int THREADS = 4;

  /** What the graph calls its tensors, and the file's name of each, where a signature gave it another one. */
  private static final String[][] GRAPH_NAMES = {@graph_names@};

  private String modelName = "";
  private Interpreter interpreter;
  private final Map<String, Integer> inputs = new HashMap<>();
  private final Map<String, Integer> outputs = new HashMap<>();
  private final Map<String, ByteBuffer> feeds = new LinkedHashMap<>();
  private final Map<String, int[]> shapes = new HashMap<>();
  private final Map<String, ByteBuffer> fetches = new LinkedHashMap<>();
  private final Map<String, DataType> fetchedTypes = new HashMap<>();
  private boolean logsStats = false;
  private String stats = "";

  /** As before 1.2: {@link #initializeTensorFlow} loads the model. */
  public TensorFlowInferenceInterface() {}

  /** Loads a model of the assets; without the prefix file:///android_asset/ a file of that path will do too. */
  public TensorFlowInferenceInterface(AssetManager assets, String model) {
    load(assets, model);
  }

  /** Loads a model from a stream, which is read to its end and stays open. */
  public TensorFlowInferenceInterface(InputStream is) {
    try {
      open(contents(is));
    } catch (IOException | IllegalArgumentException | IllegalStateException e) {
      throw new RuntimeException("Failed to load model from the input stream", e);
    }
  }

  /** As before 1.2; 0 when the model was loaded, 1 when not. */
  public int initializeTensorFlow(AssetManager assets, String model) {
    if (interpreter != null) {
      return 0;
    }
    try {
      load(assets, model);
      return 0;
    } catch (RuntimeException e) {
      Log.e(TAG, "Failed to load model from '" + model + "'", e);
      return 1;
    }
  }

  private void load(AssetManager assets, String model) {
    modelName = model;
    boolean isAsset = model.startsWith(ASSET_FILE_PREFIX);
    String name = isAsset ? model.substring(ASSET_FILE_PREFIX.length()) : model;
    try {
      byte[] content;
      try (InputStream is = assets.open(name)) {
        content = contents(is);
      } catch (IOException notAnAsset) {
        if (isAsset) {
          throw notAnAsset;
        }
        try (InputStream is = new FileInputStream(model)) {
          content = contents(is);
        }
      }
      open(content);
    } catch (IOException | IllegalArgumentException | IllegalStateException e) {
      throw new RuntimeException("Failed to load model from '" + model + "'", e);
    }
  }

  private static byte[] contents(InputStream is) throws IOException {
    ByteArrayOutputStream read = new ByteArrayOutputStream();
    byte[] piece = new byte[1 << 16];
    for (int count = is.read(piece); count >= 0; count = is.read(piece)) {
      read.write(piece, 0, count);
    }
    return read.toByteArray();
  }

  private void open(byte[] content) {
    ByteBuffer model = ByteBuffer.allocateDirect(content.length).order(ByteOrder.nativeOrder());
    model.put(content);
    model.rewind();
    interpreter = new Interpreter(model, new Interpreter.Options().setNumThreads(THREADS));
    for (int i = 0; i < interpreter.getInputTensorCount(); i++) {
      inputs.put(plain(interpreter.getInputTensor(i).name()), i);
    }
    for (int i = 0; i < interpreter.getOutputTensorCount(); i++) {
      outputs.put(plain(interpreter.getOutputTensor(i).name()), i);
    }
    for (String key : interpreter.getSignatureKeys()) {
      for (String name : interpreter.getSignatureInputs(key)) {
        Tensor tensor = interpreter.getInputTensorFromSignature(name, key);
        for (int i = 0; i < interpreter.getInputTensorCount(); i++) {
          if (interpreter.getInputTensor(i).index() == tensor.index()) {
            inputs.put(plain(name), i);
          }
        }
      }
      for (String name : interpreter.getSignatureOutputs(key)) {
        Tensor tensor = interpreter.getOutputTensorFromSignature(name, key);
        for (int i = 0; i < interpreter.getOutputTensorCount(); i++) {
          if (interpreter.getOutputTensor(i).index() == tensor.index()) {
            outputs.put(plain(name), i);
          }
        }
      }
    }
    for (String[] names : GRAPH_NAMES) {
      alias(inputs, names[0], names[1]);
      alias(outputs, names[0], names[1]);
    }
  }

  private static void alias(Map<String, Integer> places, String name, String known) {
    if (places.containsKey(known) && !places.containsKey(name)) {
      places.put(name, places.get(known));
    }
  }

  /** A name without the index of the first output of its node, or what a converter puts before names. */
  private static String plain(String name) {
    return name.endsWith(":0") ? name.substring(0, name.length() - 2) : name;
  }

  // Feeding

  public void feed(String inputName, float[] src, long... dims) {
    ByteBuffer to = fed(inputName, DataType.FLOAT32, "java.nio.FloatBuffer", src.length, dims);
    to.asFloatBuffer().put(src);
  }

  public void feed(String inputName, int[] src, long... dims) {
    ByteBuffer to = fed(inputName, DataType.INT32, "java.nio.IntBuffer", src.length, dims);
    to.asIntBuffer().put(src);
  }

  public void feed(String inputName, long[] src, long... dims) {
    ByteBuffer to = fed(inputName, DataType.INT64, "java.nio.LongBuffer", src.length, dims);
    to.asLongBuffer().put(src);
  }

  public void feed(String inputName, double[] src, long... dims) {
    float[] narrow = new float[src.length]; // a LiteRT file has float32 where the graph had float64
    for (int i = 0; i < src.length; i++) {
      narrow[i] = (float) src[i];
    }
    feed(inputName, narrow, dims);
  }

  public void feed(String inputName, byte[] src, long... dims) {
    fed(inputName, byteType(inputName), "java.nio.ByteBuffer", src.length, dims).put(src);
  }

  public void feed(String inputName, boolean[] src, long... dims) {
    ByteBuffer to = fed(inputName, DataType.BOOL, "java.nio.ByteBuffer", src.length, dims);
    for (boolean value : src) {
      to.put((byte) (value ? 1 : 0));
    }
  }

  public void feed(String inputName, FloatBuffer src, long... dims) {
    FloatBuffer from = src.duplicate();
    fed(inputName, DataType.FLOAT32, "java.nio.FloatBuffer", from.remaining(), dims).asFloatBuffer().put(from);
  }

  public void feed(String inputName, IntBuffer src, long... dims) {
    IntBuffer from = src.duplicate();
    fed(inputName, DataType.INT32, "java.nio.IntBuffer", from.remaining(), dims).asIntBuffer().put(from);
  }

  public void feed(String inputName, LongBuffer src, long... dims) {
    LongBuffer from = src.duplicate();
    fed(inputName, DataType.INT64, "java.nio.LongBuffer", from.remaining(), dims).asLongBuffer().put(from);
  }

  public void feed(String inputName, DoubleBuffer src, long... dims) {
    double[] values = new double[src.remaining()];
    src.duplicate().get(values);
    feed(inputName, values, dims);
  }

  public void feed(String inputName, ByteBuffer src, long... dims) {
    ByteBuffer from = src.duplicate();
    fed(inputName, byteType(inputName), "java.nio.ByteBuffer", from.remaining(), dims).put(from);
  }

  /** Texts: a LiteRT file of this project takes none. */
  public void feedString(String inputName, byte[] src) {
    throw new UnsupportedOperationException("'" + inputName + "': LiteRT is fed numbers here, no texts");
  }

  /** Texts: a LiteRT file of this project takes none. */
  public void feedString(String inputName, byte[][] src) {
    feedString(inputName, new byte[0]);
  }

  private DataType byteType(String name) {
    DataType type = interpreter.getInputTensor(input(name)).dataType();
    return type == DataType.INT8 || type == DataType.BOOL ? type : DataType.UINT8;
  }

  /** Room for an input's elements, which the caller puts in. */
  private ByteBuffer fed(String name, DataType type, String from, int count, long[] dims) {
    DataType wanted = interpreter.getInputTensor(input(name)).dataType();
    if (wanted != type) {
      throw new IllegalArgumentException("cannot use " + from + " with Tensor of type " + wanted);
    }
    int[] shape = new int[dims.length];
    long elements = 1;
    StringBuilder text = new StringBuilder();
    for (int i = 0; i < dims.length; i++) {
      shape[i] = (int) dims[i];
      elements *= dims[i];
      text.append(i > 0 ? ", " : "").append(dims[i]);
    }
    if (elements != count) {
      throw new IllegalArgumentException(
          "buffer with " + count + " elements is not compatible with a Tensor with shape [" + text + "]");
    }
    ByteBuffer room = ByteBuffer.allocateDirect(count * size(type)).order(ByteOrder.nativeOrder());
    feeds.put(plain(name), room);
    shapes.put(plain(name), shape);
    return room;
  }

  private static int size(DataType type) {
    switch (type) {
      case FLOAT32:
      case INT32:
        return 4;
      case INT64:
        return 8;
      default:
        return 1;
    }
  }

  private int input(String name) {
    Integer place = inputs.get(plain(name));
    if (place == null) {
      throw noOperation(name);
    }
    return place;
  }

  /** As TensorFlow says it: of the node, without the index of its output. */
  private static IllegalArgumentException noOperation(String name) {
    return new IllegalArgumentException("No Operation named [" + name.replaceFirst(":\\d+$", "") + "] in the Graph");
  }

  // Running

  public void run(String[] outputNames) {
    run(outputNames, false);
  }

  /** Runs the model; with {@code enableStats} {@link #getStatString} says how long it took. */
  public void run(String[] outputNames, boolean enableStats) {
    try {
      runFed(outputNames, enableStats);
    } finally {
      feeds.clear();
      shapes.clear();
    }
  }

  private void runFed(String[] outputNames, boolean enableStats) {
    fetches.clear();
    fetchedTypes.clear();
    try {
      List<Integer> places = new ArrayList<>();
      for (String name : outputNames) {
        Integer place = outputs.get(plain(name));
        if (place == null) {
          throw noOperation(name);
        }
        places.add(place);
      }
      Object[] given = new Object[interpreter.getInputTensorCount()];
      for (Map.Entry<String, ByteBuffer> entry : feeds.entrySet()) {
        int place = input(entry.getKey());
        interpreter.resizeInput(place, shapes.get(entry.getKey()));
        entry.getValue().rewind();
        given[place] = entry.getValue();
      }
      for (int i = 0; i < given.length; i++) {
        if (given[i] == null) {
          throw new IllegalArgumentException("'" + plain(interpreter.getInputTensor(i).name()) + "' was not fed");
        }
      }
      interpreter.allocateTensors();
      Map<Integer, Object> results = new HashMap<>();
      for (int place : places) {
        int bytes = interpreter.getOutputTensor(place).numBytes();
        results.put(place, ByteBuffer.allocateDirect(bytes).order(ByteOrder.nativeOrder()));
      }
      long begun = System.nanoTime();
      interpreter.runForMultipleInputsOutputs(given, results);
      double milliseconds = (System.nanoTime() - begun) / 1e6;
      for (int i = 0; i < outputNames.length; i++) {
        fetches.put(outputNames[i], (ByteBuffer) results.get(places.get(i)));
        fetchedTypes.put(outputNames[i], interpreter.getOutputTensor(places.get(i)).dataType());
      }
      if (enableStats || logsStats) {
        stats = String.format(Locale.ROOT, "LiteRT: %.3f ms in the whole model", milliseconds);
      }
    } catch (RuntimeException e) {
      Log.e(TAG, "Failed to run TensorFlow inference with inputs:" + feeds.keySet()
          + ", outputs:" + java.util.Arrays.toString(outputNames));
      throw e;
    }
  }

  // Fetching

  public void fetch(String outputName, float[] dst) {
    fetch(outputName, FloatBuffer.wrap(dst));
  }

  public void fetch(String outputName, int[] dst) {
    fetch(outputName, IntBuffer.wrap(dst));
  }

  public void fetch(String outputName, long[] dst) {
    fetch(outputName, LongBuffer.wrap(dst));
  }

  public void fetch(String outputName, double[] dst) {
    fetch(outputName, DoubleBuffer.wrap(dst));
  }

  public void fetch(String outputName, byte[] dst) {
    fetch(outputName, ByteBuffer.wrap(dst));
  }

  public void fetch(String outputName, FloatBuffer dst) {
    dst.put(fetched(outputName, DataType.FLOAT32, dst).asFloatBuffer());
  }

  public void fetch(String outputName, IntBuffer dst) {
    dst.put(fetched(outputName, DataType.INT32, dst).asIntBuffer());
  }

  public void fetch(String outputName, LongBuffer dst) {
    dst.put(fetched(outputName, DataType.INT64, dst).asLongBuffer());
  }

  public void fetch(String outputName, DoubleBuffer dst) {
    FloatBuffer from = fetched(outputName, DataType.FLOAT32, dst).asFloatBuffer();
    if (from.remaining() > dst.remaining()) {
      throw new java.nio.BufferOverflowException();
    }
    while (from.hasRemaining()) {
      dst.put(from.get());
    }
  }

  public void fetch(String outputName, ByteBuffer dst) {
    DataType type = fetchedTypes.get(outputName);
    dst.put(fetched(outputName, type == DataType.INT8 || type == DataType.BOOL ? type : DataType.UINT8, dst));
  }

  private ByteBuffer fetched(String name, DataType type, Buffer to) {
    ByteBuffer found = fetches.get(name);
    if (found == null) {
      throw new RuntimeException("Node '" + name + "' was not provided to run(), so it cannot be read");
    }
    if (fetchedTypes.get(name) != type) {
      throw new IllegalArgumentException(
          "cannot use " + to.getClass().getName() + " with Tensor of type " + fetchedTypes.get(name));
    }
    ByteBuffer from = found.duplicate().order(ByteOrder.nativeOrder());
    from.rewind();
    return from;
  }

  // What is known of the model

  /** An input or output of the file as the operation of that name; LiteRT knows no others. */
  public Operation graphOperation(String operationName) {
    Operation found = graph().operation(plain(operationName));
    if (found == null) {
      throw new RuntimeException("Node '" + operationName + "' does not exist in model '" + modelName + "'");
    }
    return found;
  }

  /** The inputs and outputs of the file as a graph. */
  public Graph graph() {
    List<Operation> found = new ArrayList<>();
    for (Map.Entry<String, Integer> input : inputs.entrySet()) { // forEach came with Android 7
      int[] shape = interpreter.getInputTensor(input.getValue()).shapeSignature();
      found.add(new Operation(input.getKey(), "Placeholder", shape));
    }
    for (Map.Entry<String, Integer> output : outputs.entrySet()) {
      int[] shape = interpreter.getOutputTensor(output.getValue()).shapeSignature();
      found.add(new Operation(output.getKey(), "Identity", shape));
    }
    return new Graph(found);
  }

  /** "" before a run with statistics. */
  public String getStatString() {
    return stats;
  }

  @Override
  public void close() {
    if (interpreter != null) {
      interpreter.close();
      interpreter = null;
    }
    feeds.clear();
    shapes.clear();
    fetches.clear();
    inputs.clear();
    outputs.clear();
  }

  // As before 1.2

  public void enableStatLogging(boolean enabled) {
    logsStats = enabled;
  }

  /** 0, or -1 when the run failed. What was fed stays fed, as it did then. */
  public int runInference(String[] outputNames) {
    try {
      runFed(outputNames, false);
      return 0;
    } catch (RuntimeException e) {
      Log.e(TAG, "Failed to run inference", e);
      return -1;
    }
  }

  public void fillNodeFloat(String inputName, int[] dims, float[] src) {
    feed(inputName, src, longs(dims));
  }

  public void fillNodeInt(String inputName, int[] dims, int[] src) {
    feed(inputName, src, longs(dims));
  }

  public void fillNodeDouble(String inputName, int[] dims, double[] src) {
    feed(inputName, src, longs(dims));
  }

  public void fillNodeByte(String inputName, int[] dims, byte[] src) {
    feed(inputName, src, longs(dims));
  }

  /** The oldest form: four sizes. */
  public void fillNodeFloat(String inputName, int x, int y, int z, int d, float[] src) {
    feed(inputName, src, x, y, z, d);
  }

  public void fillNodeFloatWithDimensions(String inputName, int[] dims, float[] src) {
    feed(inputName, src, longs(dims));
  }

  public void fillNodeFromFloatBuffer(String inputName, IntBuffer dims, FloatBuffer src) {
    feed(inputName, src, longs(dims));
  }

  public void fillNodeFromIntBuffer(String inputName, IntBuffer dims, IntBuffer src) {
    feed(inputName, src, longs(dims));
  }

  public void fillNodeFromDoubleBuffer(String inputName, IntBuffer dims, DoubleBuffer src) {
    feed(inputName, src, longs(dims));
  }

  public void fillNodeFromByteBuffer(String inputName, IntBuffer dims, ByteBuffer src) {
    feed(inputName, src, longs(dims));
  }

  /** 0, or -1 when the node is not among the outputs of the run. */
  public int readNodeFloat(String outputName, float[] dst) {
    return read(outputName, () -> fetch(outputName, dst));
  }

  public int readNodeInt(String outputName, int[] dst) {
    return read(outputName, () -> fetch(outputName, dst));
  }

  public int readNodeDouble(String outputName, double[] dst) {
    return read(outputName, () -> fetch(outputName, dst));
  }

  public int readNodeByte(String outputName, byte[] dst) {
    return read(outputName, () -> fetch(outputName, dst));
  }

  public int readNodeIntoFloatBuffer(String outputName, FloatBuffer dst) {
    return read(outputName, () -> fetch(outputName, dst));
  }

  public int readNodeIntoIntBuffer(String outputName, IntBuffer dst) {
    return read(outputName, () -> fetch(outputName, dst));
  }

  public int readNodeIntoDoubleBuffer(String outputName, DoubleBuffer dst) {
    return read(outputName, () -> fetch(outputName, dst));
  }

  public int readNodeIntoByteBuffer(String outputName, ByteBuffer dst) {
    return read(outputName, () -> fetch(outputName, dst));
  }

  private int read(String outputName, Runnable fetching) {
    if (!fetches.containsKey(outputName)) {
      Log.e(TAG, "Output [" + outputName + "] not found, aborting!");
      return -1;
    }
    fetching.run();
    return 0;
  }

  private static long[] longs(int[] dims) {
    long[] made = new long[dims.length];
    for (int i = 0; i < dims.length; i++) {
      made[i] = dims[i];
    }
    return made;
  }

  private static long[] longs(IntBuffer dims) {
    int[] made = new int[dims.remaining()];
    dims.duplicate().get(made);
    return longs(made);
  }
}
