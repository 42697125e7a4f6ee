package androidx.test.platform.app;

import android.app.Instrumentation;

/** Stands for AndroidX's: what was set. */
public final class InstrumentationRegistry {
  public static Instrumentation instrumentation;

  private InstrumentationRegistry() {}

  public static Instrumentation getInstrumentation() {
    return instrumentation;
  }
}
