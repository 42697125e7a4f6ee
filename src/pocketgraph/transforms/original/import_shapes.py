"""What TensorFlow 1.15 demands of the shapes of an op's inputs when it imports a node: a row an op in a table.

A row of ``import_shapes.txt`` has a word for each argument of the op: ``-`` is a scalar, ``*`` anything, ``<2`` fewer
dimensions than two. In other words each character is a dimension: a digit its size, a small letter a size that is the
same wherever the letter stands, ``.`` any size. ``*`` before them stands for any further dimensions, a capital letter
for such that are the same wherever it stands. The rows are what its import refused of nodes whose placeholders had one
shape after the other.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pocketgraph.errors import GraphError
from pocketgraph.graph import Node, Shape, opdefs
from pocketgraph.package_data import text_beside

ROWS = {op: words for op, *words in map(str.split, text_beside(__file__, "import_shapes.txt").splitlines())}
"""By op: a word an argument."""


def wrong_shapes(node: Node, shapes: Sequence[Shape]) -> str:
    """What 1.15 would say of the shapes of a node's data inputs, as far as they are known; "" where it takes them."""
    sizes: dict[tuple[str, int], int] = {}
    for number, (word, shape) in enumerate(zip(_words(node), shapes, strict=False)):
        if shape.dims is None:
            continue
        rank = len(shape.dims)
        if word[0] == "<":
            if rank >= int(word[1]):
                return f"input {number} must have fewer than {word[1]} dimensions, its shape is {shape}"
            continue
        more, places = (word[0], word[1:]) if word[0] == "*" or word[0].isupper() else ("", word.strip("-"))
        if rank < len(places) or (rank > len(places) and not more):
            wanted = f"{len(places)}{' or more' if more else ''}"
            return f"input {number} must have {wanted} dimensions, its shape is {shape}"
        leading = rank - len(places)
        names = [(more, index) for index in range(leading)] + [(place, 0) for place in places]
        if more.isupper() and sizes.setdefault((more, -1), leading) != leading:
            return f"input {number} has another number of dimensions than an input before it, its shape is {shape}"
        for name, size in zip(names, shape.dims, strict=True):
            if name[0] in "*." or size is None:
                continue
            expected = int(name[0]) if name[0].isdigit() else sizes.setdefault(name, size)
            if size != expected:
                return f"Dimensions must be equal, but are {size} and {expected}: input {number} has the shape {shape}"
    return ""


def _words(node: Node) -> Iterator[str]:
    """A word for each data input; none where nothing is demanded or the node's attributes do not tell its inputs."""
    row = ROWS.get(node.op, ())
    try:
        for argument, word in zip(opdefs.definition(node.op).inputs if row else (), row, strict=True):
            yield from [word] * len(opdefs.arg_dtypes(node, argument))
    except GraphError:
        return
