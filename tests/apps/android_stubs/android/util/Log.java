package android.util;

/** Stands for Android's: keeps what was logged last. */
public final class Log {
  public static String last = "";

  public static int e(String tag, String message) {
    last = message;
    return 0;
  }

  public static int e(String tag, String message, Throwable error) {
    last = message;
    return 0;
  }
}
