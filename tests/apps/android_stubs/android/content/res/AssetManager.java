package android.content.res;

import java.io.File;
import java.io.FileInputStream;
import java.io.IOException;
import java.io.InputStream;

/** Stands for Android's: the files of a folder. */
public final class AssetManager {
  private final File folder;

  public AssetManager(File folder) {
    this.folder = folder;
  }

  public InputStream open(String name) throws IOException {
    return new FileInputStream(new File(folder, name));
  }

  public AssetFileDescriptor openFd(String name) throws IOException {
    return new AssetFileDescriptor(new File(folder, name));
  }
}
