import android.content.res.AssetManager;
import android.util.Log;
import com.example.old.TensorFlowInferenceInterface;
import java.io.ByteArrayInputStream;
import java.io.File;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.DoubleBuffer;
import java.nio.FloatBuffer;
import java.nio.IntBuffer;
import java.util.Arrays;
import java.util.Iterator;
import org.tensorflow.Graph;
import org.tensorflow.Operation;
import org.tensorflow.Output;

/** What apps of TensorFlow Mobile do, in its newer and its older words. */
public final class OldApp {
  private static void check(boolean holds, String what) {
    if (!holds) {
      throw new AssertionError(what);
    }
  }

  private static void refuses(Class<? extends RuntimeException> kind, String says, Runnable does) {
    try {
      does.run();
    } catch (RuntimeException error) {
      check(kind.isInstance(error) && String.valueOf(error.getMessage()).contains(says), error.toString());
      return;
    }
    throw new AssertionError("does not refuse: " + says);
  }

  private static AssetManager assets;

  public static void main(String[] words) throws Exception {
    assets = new AssetManager(new File(words[0]));
    newer();
    older();
    refusals();
    System.out.println("passed");
  }

  private static void newer() throws Exception {
    TensorFlowInferenceInterface model =
        new TensorFlowInferenceInterface(assets, "file:///android_asset/model.tflite");
    Operation operation = model.graphOperation("y");
    check(operation.output(0).shape().size(1) == 2, "the size of an output");
    check(operation.output(0).shape().size(0) == -1, "an open size");
    Graph graph = model.graph();
    check(graph.operation("detection_boxes") == null, "an operation that is not there");
    check(graph.operation("x").type().equals("Placeholder"), "an input");
    Output<Float> output = graph.operation("y").output(0);
    check(output.shape().numDimensions() == 2 && output.op().name().equals("y"), "an output");
    int count = 0;
    for (Iterator<Operation> all = graph.operations(); all.hasNext(); all.next()) {
      count++;
    }
    check(count >= 4, "all operations");
    model.feed("x:0", new float[] {1, 2, 3, 4}, 2, 2);
    model.feed("k", new int[] {3}, 1);
    model.run(new String[] {"y", "n:0"}, true);
    float[] y = new float[5];
    long[] n = new long[1];
    model.fetch("y", y);
    model.fetch("n:0", n);
    check(Arrays.equals(y, new float[] {3, 6, 9, 12, 0}), Arrays.toString(y));
    check(n[0] == 3, "n");
    check(model.getStatString().contains("ms"), "statistics");
    double[] wide = new double[4];
    model.fetch("y", wide);
    check(wide[3] == 12, "doubles");
    model.feed("scope/x".substring(6), FloatBuffer.wrap(new float[] {5, 6}), 1, 2);
    model.feed("k", IntBuffer.wrap(new int[] {2}), 1);
    model.run(new String[] {"scope/y"});
    FloatBuffer into = FloatBuffer.allocate(2);
    model.fetch("scope/y", into);
    check(into.get(1) == 12, "a buffer");
    model.close();
    new TensorFlowInferenceInterface(assets.open("model.tflite")).close();
  }

  private static void older() {
    TensorFlowInferenceInterface model = new TensorFlowInferenceInterface();
    check(model.initializeTensorFlow(assets, "file:///android_asset/none.tflite") == 1, "no model");
    check(model.initializeTensorFlow(assets, "file:///android_asset/model.tflite") == 0, "a model");
    model.enableStatLogging(true);
    model.fillNodeFloat("x", new int[] {1, 2}, new float[] {1, 2});
    model.fillNodeInt("k", new int[] {1}, new int[] {4});
    check(model.runInference(new String[] {"y"}) == 0, "a run");
    float[] y = new float[2];
    check(model.readNodeFloat("y", y) == 0 && y[1] == 8, "y");
    check(model.readNodeFloat("z", y) == -1, "no z");
    check(Log.last.equals("Output [z] not found, aborting!"), Log.last);
    model.fillNodeFromDoubleBuffer("x", IntBuffer.wrap(new int[] {1, 2}), DoubleBuffer.wrap(new double[] {1, 3}));
    check(model.runInference(new String[] {"y"}) == 0, "k is still fed");
    FloatBuffer into = FloatBuffer.allocate(2);
    check(model.readNodeIntoFloatBuffer("y", into) == 0 && into.get(1) == 12, "a buffer");
    check(model.readNodeIntoFloatBuffer("z", into) == -1, "no z");
    model.fillNodeFloat("x", new int[] {1, 2}, new float[] {1, 2});
    model.run(new String[] {"y"});
    check(model.runInference(new String[] {"y"}) == -1, "k is gone after run");
    check(!model.getStatString().isEmpty(), "statistics");
    model.close();
  }

  private static void refusals() {
    refuses(RuntimeException.class, "Failed to load model from 'file:///android_asset/no'", () ->
        new TensorFlowInferenceInterface(assets, "file:///android_asset/no"));
    refuses(RuntimeException.class, "Failed to load model from the input stream", () ->
        new TensorFlowInferenceInterface(new ByteArrayInputStream(new byte[] {1})));
    TensorFlowInferenceInterface model = new TensorFlowInferenceInterface(assets, "model.tflite");
    refuses(IllegalArgumentException.class, "No Operation named [q] in the Graph", () ->
        model.feed("q", new float[1], 1));
    refuses(IllegalArgumentException.class, "No Operation named [q] in the Graph", () ->
        model.feed("q:1", new float[1], 1));
    refuses(IllegalArgumentException.class, "not compatible with a Tensor with shape [2, 2]", () ->
        model.feed("x", new float[3], 2, 2));
    refuses(IllegalArgumentException.class, "cannot use java.nio.IntBuffer with Tensor of type FLOAT32", () ->
        model.feed("x", new int[2], 1, 2));
    refuses(RuntimeException.class, "Node 'y' was not provided to run(), so it cannot be read", () ->
        model.fetch("y", new float[2]));
    refuses(RuntimeException.class, "Node 'q' does not exist in model 'model.tflite'", () ->
        model.graphOperation("q"));
    refuses(UnsupportedOperationException.class, "no texts", () -> model.feedString("x", new byte[1]));
    model.feed("x", new float[2], 1, 2);
    model.feed("k", new int[1], 1);
    model.run(new String[] {"y"});
    refuses(java.nio.BufferOverflowException.class, "null", () -> model.fetch("y", new float[1]));
    refuses(IllegalArgumentException.class, "with Tensor of type FLOAT32", () -> model.fetch("y", new int[2]));
    check(ByteBuffer.allocate(1).order(ByteOrder.nativeOrder()) != null, "buffers");
  }
}
