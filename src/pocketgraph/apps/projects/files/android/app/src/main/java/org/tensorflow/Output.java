package org.tensorflow;

/** An output of an operation, of elements of type T. */
public final class Output<T> {
  private final Operation operation;
  private final int index;
  private final Shape shape;

  Output(Operation operation, int index, Shape shape) {
    this.operation = operation;
    this.index = index;
    this.shape = shape;
  }

  public Operation op() {
    return operation;
  }

  public int index() {
    return index;
  }

  public Shape shape() {
    return shape;
  }
}
