package org.tensorflow;

/** What old apps ask of an operation: the shape of its output. */
public final class Operation {
  private final String name;
  private final String type;
  private final int[] sizes;

  /** An operation with one output of these sizes, -1 where one is open; an input's type is Placeholder. */
  public Operation(String name, String type, int[] sizes) {
    this.name = name;
    this.type = type;
    this.sizes = sizes;
  }

  public String name() {
    return name;
  }

  public String type() {
    return type;
  }

  public int numOutputs() {
    return 1;
  }

  public <T> Output<T> output(int index) {
    return new Output<>(this, index, new Shape(sizes));
  }
}
