package android.graphics;

/** Stands for Android's: pixels as 0xAARRGGBB; resized by two neighbours each way, as Skia's linear filter samples. */
public final class Bitmap {
  private final int width;
  private final int height;
  private final int[] pixels;

  public Bitmap(int width, int height, int[] pixels) {
    this.width = width;
    this.height = height;
    this.pixels = pixels;
  }

  public int getWidth() {
    return width;
  }

  public int getHeight() {
    return height;
  }

  public void getPixels(int[] to, int offset, int stride, int x, int y, int width, int height) {
    for (int row = 0; row < height; row++) {
      System.arraycopy(pixels, (y + row) * this.width + x, to, offset + row * stride, width);
    }
  }

  public static Bitmap createBitmap(Bitmap from, int x, int y, int width, int height) {
    int[] made = new int[width * height];
    from.getPixels(made, 0, width, x, y, width, height);
    return new Bitmap(width, height, made);
  }

  public static Bitmap createScaledBitmap(Bitmap from, int width, int height, boolean filter) {
    if (!filter) {
      throw new UnsupportedOperationException("the apps filter");
    }
    int[] made = new int[width * height];
    for (int y = 0; y < height; y++) {
      double top = Math.max(0, Math.min(from.height - 1, (y + 0.5) * from.height / height - 0.5));
      for (int x = 0; x < width; x++) {
        double left = Math.max(0, Math.min(from.width - 1, (x + 0.5) * from.width / width - 0.5));
        made[y * width + x] = from.between(top, left);
      }
    }
    return new Bitmap(width, height, made);
  }

  private int between(double top, double left) {
    int y = (int) top;
    int x = (int) left;
    int below = Math.min(y + 1, height - 1);
    int right = Math.min(x + 1, width - 1);
    int made = 0;
    for (int shift = 0; shift < 32; shift += 8) {
      double upper = mixed(pixels[y * width + x], pixels[y * width + right], shift, left - x);
      double lower = mixed(pixels[below * width + x], pixels[below * width + right], shift, left - x);
      made |= (int) Math.round(upper + (lower - upper) * (top - y)) << shift;
    }
    return made;
  }

  private static double mixed(int first, int second, int shift, double share) {
    int low = (first >>> shift) & 0xff;
    int high = (second >>> shift) & 0xff;
    return low + (high - low) * share;
  }
}
