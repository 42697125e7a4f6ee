package org.tensorflow.lite;

import java.nio.ByteBuffer;
import org.checkerframework.checker.nullness.qual.NonNull;

/** As LiteRT's, which has its calls of a class that others cannot name. */
public final class Interpreter extends InterpreterImpl {
  /** As LiteRT's. */
  public static class Options extends InterpreterImpl.Options {
    public Options setNumThreads(int threads) {
      this.threads = threads;
      return this;
    }
  }

  public Interpreter(@NonNull ByteBuffer model) {
    this(model, null);
  }

  public Interpreter(@NonNull ByteBuffer model, Options options) {
    super(model, options);
  }
}
