import android.app.Instrumentation;
import android.content.Context;
import android.content.res.AssetManager;
import android.graphics.Bitmap;
import androidx.test.platform.app.InstrumentationRegistry;
import java.awt.image.BufferedImage;
import java.io.File;
import javax.imageio.ImageIO;
import org.junit.runner.JUnitCore;
import org.junit.runner.Result;
import org.junit.runner.notification.Failure;

/**
 * Runs an app's own test, then its model on pictures: package, the app's assets, those of its test, pictures. A line a
 * picture and output: the numbers; then a line a class of the best.
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
        Object best = kind.getMethod("best", int.class, float.class).invoke(model, 3, 0.1f);
        for (Object found : (Iterable<?>) best) {
          System.out.println(found);
        }
      }
    }
  }

  private static Bitmap bitmap(File file) throws Exception {
    BufferedImage picture = ImageIO.read(file);
    int width = picture.getWidth();
    int height = picture.getHeight();
    return new Bitmap(width, height, picture.getRGB(0, 0, width, height, null, 0, width));
  }
}
