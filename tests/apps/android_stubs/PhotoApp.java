import android.app.Instrumentation;
import android.content.Context;
import android.content.res.AssetManager;
import android.graphics.Bitmap;
import androidx.test.platform.app.InstrumentationRegistry;
import java.awt.image.BufferedImage;
import java.io.File;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.FloatBuffer;
import java.util.Arrays;
import java.util.List;
import javax.imageio.ImageIO;
import org.junit.runner.JUnitCore;
import org.junit.runner.Result;
import org.junit.runner.notification.Failure;

/**
 * Runs an app's own test, then its model on pictures: package, the app's assets, those of its test, pictures. Of each
 * picture a line has the numbers, one says whether the class for old apps has the same, and one is of each of the best classes.
 */
public final class PhotoApp {
  public static void main(String[] words) throws Exception {
    Context app = new Context(new AssetManager(new File(words[1])));
    Context test = new Context(new AssetManager(new File(words[2])));
    InstrumentationRegistry.instrumentation = new Instrumentation(test, app);
    Result result = JUnitCore.runClasses(Class.forName(words[0] + ".ModelTest"));
    for (Failure failure : result.getFailures()) {
      System.out.println(failure.getTrace());
    }
    System.out.printf("tests %d failed %d%n", result.getRunCount(), result.getFailureCount());
    Class<?> kind = Class.forName(words[0] + ".Model");
    try (AutoCloseable model = (AutoCloseable) kind.getConstructor(Context.class, int.class).newInstance(app, 1)) {
      for (int i = 3; i < words.length; i++) {
        kind.getMethod("feed", Bitmap.class).invoke(model, bitmap(new File(words[i])));
        kind.getMethod("run").invoke(model);
        StringBuilder line = new StringBuilder("numbers");
        for (float number : (float[]) kind.getMethod("numbers", int.class).invoke(model, 0)) {
          line.append(' ').append(number);
        }
        System.out.println(line);
        compare(words[0], app, kind, model);
        Object best = kind.getMethod("best", int.class, float.class).invoke(model, 3, 0.1f);
        for (Object found : (Iterable<?>) best) {
          System.out.println(found);
        }
      }
    }
  }

  /** The class for old apps gives, of the same input, the same bytes. */
  private static void compare(String name, Context app, Class<?> kind, Object model) throws Exception {
    ByteBuffer given = (ByteBuffer) kind.getMethod("input", int.class).invoke(model, 0);
    ByteBuffer wanted = (ByteBuffer) kind.getMethod("output", int.class).invoke(model, 0);
    Object facts = kind.getField("Companion").get(null);
    String in = ((List<?>) facts.getClass().getMethod("getINPUTS").invoke(facts)).get(0) + ":0";
    String out = (String) ((List<?>) facts.getClass().getMethod("getOUTPUTS").invoke(facts)).get(0);
    int[] sizes = (int[]) ((List<?>) facts.getClass().getMethod("getINPUT_SHAPES").invoke(facts)).get(0);
    long[] dims = Arrays.stream(sizes).asLongStream().toArray();
    Class<?> older = Class.forName(name + ".TensorFlowInferenceInterface");
    Object old = older.getConstructor(AssetManager.class, String.class).newInstance(app.getAssets(), "model.tflite");
    boolean isFloat = given.remaining() == 4 * Arrays.stream(sizes).reduce(1, (a, b) -> a * b);
    Class<?> buffers = isFloat ? FloatBuffer.class : ByteBuffer.class;
    older.getMethod("feed", String.class, buffers, long[].class)
        .invoke(old, in, isFloat ? given.asFloatBuffer() : given, dims);
    older.getMethod("run", String[].class).invoke(old, (Object) new String[] {out});
    ByteBuffer found = ByteBuffer.allocate(wanted.remaining()).order(ByteOrder.nativeOrder());
    older.getMethod("fetch", String.class, buffers).invoke(old, out, isFloat ? found.asFloatBuffer() : found);
    older.getMethod("close").invoke(old);
    System.out.println("the same by TensorFlowInferenceInterface: " + found.clear().equals(wanted));
  }

  private static Bitmap bitmap(File file) throws Exception {
    BufferedImage picture = ImageIO.read(file);
    int width = picture.getWidth();
    int height = picture.getHeight();
    return new Bitmap(width, height, picture.getRGB(0, 0, width, height, null, 0, width));
  }
}
