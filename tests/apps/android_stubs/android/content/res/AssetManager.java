package android.content.res;

import java.io.ByteArrayInputStream;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.io.InputStream;

/** Stands for Android's: there is one asset. */
public final class AssetManager {
  public InputStream open(String name) throws IOException {
    if (!name.equals("model.tflite")) {
      throw new FileNotFoundException(name);
    }
    return new ByteArrayInputStream(new byte[] {1, 2, 3});
  }
}
