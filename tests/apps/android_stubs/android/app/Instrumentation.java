package android.app;

import android.content.Context;

/** Stands for Android's: the test's context, and the app's. */
public class Instrumentation {
  private final Context context;
  private final Context targetContext;

  public Instrumentation(Context context, Context targetContext) {
    this.context = context;
    this.targetContext = targetContext;
  }

  public Context getContext() {
    return context;
  }

  public Context getTargetContext() {
    return targetContext;
  }
}
