package org.tensorflow;

import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.Map;

/** What old apps ask of a graph: its operations, of which a LiteRT file knows the inputs and the outputs. */
public final class Graph implements AutoCloseable {
  private final Map<String, Operation> operations = new LinkedHashMap<>();

  /** A graph of these operations. */
  public Graph(Iterable<Operation> operations) {
    for (Operation operation : operations) {
      this.operations.put(operation.name(), operation);
    }
  }

  /** The operation of this name; null when the file has none. */
  public Operation operation(String name) {
    return operations.get(name);
  }

  public Iterator<Operation> operations() {
    return operations.values().iterator();
  }

  @Override
  public void close() {}
}
