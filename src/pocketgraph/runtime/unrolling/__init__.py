"""Loop unrolling, before a graph is planned: rounds that are known become nodes, so that LiteRT can run them.

loops.py                      finds loops and unrolls those whose rounds are known, ``unrolled``
  trip_count.py               how many rounds there are
  idempotent_rounds.py        where further rounds change nothing, so that an end is known
  symbolic_values.py          what stands for a tensor meanwhile
  tensor_array_elimination.py arrays of tensors become tensors
  unrolled_graph.py           the nodes that are made
partial_unrolling.py          long loops: fewer rounds, each of many steps
  frame_writer.py             the loop that is left around them
loop_shapes.py, array_origins.py   what is known of loops that stay
"""
