package android.content.res;

import java.io.Closeable;
import java.io.File;
import java.io.FileDescriptor;
import java.io.FileInputStream;
import java.io.IOException;

/** Stands for Android's: a whole file. */
public class AssetFileDescriptor implements Closeable {
  private final FileInputStream file;
  private final long length;

  AssetFileDescriptor(File file) throws IOException {
    this.file = new FileInputStream(file);
    length = file.length();
  }

  public FileDescriptor getFileDescriptor() {
    try {
      return file.getFD();
    } catch (IOException e) {
      throw new IllegalStateException(e);
    }
  }

  public long getStartOffset() {
    return 0;
  }

  public long getDeclaredLength() {
    return length;
  }

  @Override
  public void close() throws IOException {
    file.close();
  }
}
