package org.tensorflow;

/** What old apps ask of an operation: the shape of its output. */
public final class Operation {
  private final String name;
  private final int[] sizes;

  /** An operation with one output of these sizes, -1 where one is open. */
  public Operation(String name, int[] sizes) {
    this.name = name;
    this.sizes = sizes;
  }

  public String name() {
    return name;
  }

  public int numOutputs() {
    return 1;
  }

  public Output output(int index) {
    return new Output(this, index, new Shape(sizes));
  }
}
