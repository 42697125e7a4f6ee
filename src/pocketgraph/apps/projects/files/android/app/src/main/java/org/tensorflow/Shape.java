package org.tensorflow;

import java.util.Arrays;

/** The shape of an output; -1 is a size that is open. */
public final class Shape {
  private final int[] sizes;

  Shape(int[] sizes) {
    this.sizes = sizes.clone();
  }

  public int numDimensions() {
    return sizes.length;
  }

  public long size(int index) {
    return sizes[index];
  }

  @Override
  public String toString() {
    return Arrays.toString(sizes);
  }
}
