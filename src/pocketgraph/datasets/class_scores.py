"""The scores of classes that a graph's answer is picked from, and by which of its outputs a model is judged."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

import numpy as np

from pocketgraph.graph import Graph, canonical
from pocketgraph.graph.dtype import INT32, INT64, STRING
from pocketgraph.graph.entry_survey import NAMED
from pocketgraph.graph.node import find_source
from pocketgraph.graph.op_traits import SAME_VALUES, ops_with
from pocketgraph.kernels.shapes import infer

_BEST = "ArgMax"
SHARES = ("Softmax", "Sigmoid")
"""Not a trait: what gives shares of classes, that of all of them first."""
_NAMES_OF_SCORES = re.compile(r"logit|class|prob|score|softmax|label|categor", re.IGNORECASE)
_NAMES_OF_BOXES = re.compile(r"(?<![a-z])b?box(es)?(?![a-z])|bounding_?box", re.IGNORECASE)
_NAMES_OF_PLACES = re.compile(
    r"(?<![a-z])(locs?|locations?|locali[sz]ations?|regress(ions?|ors?)|rois?|coord(inate)?s?|corners?|offsets?|deltas?)(?![a-z])",
    re.IGNORECASE,
)
"""What heads of boxes are called that say nothing of boxes, as in SSD, RetinaNet and MediaPipe; others may be, too."""
_LAYERS = ops_with("layer", "bias", "sum") | {"tfl.fully_connected", "tfl.add"}
_SIGNED = frozenset({"Tanh", "Softsign", "tfl.tanh"})
"""Not a trait: what gives scores from -1 to 1 of two classes."""
VIEWS_OF_FILES = frozenset({"tfl.dequantize", "tfl.quantize", "tfl.reshape", "tfl.squeeze"})
"""Not a trait: what hands on in a LiteRT file."""
_FIRST_FEW = frozenset({"TopK", "TopKV2"})


def scores_picked_from(graph: Graph, output: str) -> str | None:
    """The tensor of scores whose largest one, or whose few largest, a graph gives as its answer, or the names of
    these; None for other outputs.

    Only where the scores are a row for each sample, [batch, classes]: those of each place of a picture are many times
    as large as the answer, and who picked there wants no scores.

    Args:
        output: the tensor or node that gives the answer, such as int64 [batch].
    """
    node = graph.find_producer(output, SAME_VALUES)
    if node is not None and node.op in NAMED:
        node = graph.find_producer(node.data_inputs[NAMED[node.op]], SAME_VALUES)
    if node is None or node.op not in {_BEST} | _FIRST_FEW:
        return None
    scores = canonical(node.data_inputs[0])
    inferred = infer(graph, outputs=[output])
    sizes, axis = inferred.shape(scores).dims, np.int64(-1)
    if node.op == _BEST:
        axis = inferred.value(canonical(node.data_inputs[1]))
    is_row = sizes is not None and len(sizes) == 2 and sizes[1] != 1 and axis is not None and int(axis) in (1, -1)
    return scores.removesuffix(":0") if is_row else None


def numbers_named(graph: Graph, output: str) -> str | None:
    """The tensor of whole numbers that a table of the graph has names for, where these are what an output gives."""
    node = graph.find_producer(output, SAME_VALUES)
    is_name = node is not None and node.op in ops_with("table_lookup") and node.attrs.get("Tin") in (INT32, INT64)
    return node.data_inputs[NAMED[node.op]] if node is not None and is_name else None


def judged_outputs(graph: Graph, names: Sequence[str]) -> list[str]:
    """Outputs in the order in which a model is judged by them: where the first is no floats, shares of classes come
    first, then other floats; the few largest scores stand for all of them, and so do the names of these."""
    found = list(names)
    if len(found) > 1:
        inferred = infer(graph, outputs=names)
        dtypes = {name: inferred.dtype(canonical(name)) for name in names}
        others = {name for name, dtype in dtypes.items() if dtype is None or not dtype.is_floating}
        if found[0] in others:
            found.sort(key=lambda name: len(SHARES) + 1 if name in others else _rank(graph, name))
    node = graph.find_producer(found[0], SAME_VALUES)
    is_part = node is not None and (node.op in _FIRST_FEW or node.op in NAMED)
    return [(scores_picked_from(graph, found[0]) if is_part else None) or found[0], *found[1:]]


def _rank(graph: Graph, name: str) -> int:
    node = graph.find_producer(name, SAME_VALUES)
    return SHARES.index(node.op) if node is not None and node.op in SHARES else len(SHARES)


def says_scores(graph: Graph, output: str) -> bool:
    """Whether an output's last op or its name says that its numbers are scores of classes, no forecasts or the like.

    >>> from pocketgraph.graph.text_format import parse
    >>> graph = parse('''
    ...     forecast = Placeholder(dtype=float)
    ...     y = Softmax(forecast, T=float)
    ... ''')
    >>> says_scores(graph, "y"), says_scores(graph, "forecast")
    (True, False)
    """
    node = graph.find_producer(output, SAME_VALUES | VIEWS_OF_FILES)
    if says_boxes(graph, output):
        return False
    ops = {*SHARES, "LogSoftmax", "tfl.softmax", "tfl.log_softmax", "tfl.logistic", _BEST} | _FIRST_FEW
    return (node is not None and node.op in ops) or _NAMES_OF_SCORES.search(output) is not None


def says_boxes(graph: Graph, output: str) -> bool:
    """Whether an output's name says that its numbers are where boxes are; a sigmoid gives these as shares of a side.
    Of names such as ``loc`` and ``regression``, only where they are four numbers a box.

    >>> from pocketgraph.graph.text_format import parse
    >>> graph = parse("x = Placeholder(dtype=float)\\nbbox = Sigmoid(x, T=float)\\nbox_scores = Sigmoid(x, T=float)")
    >>> says_boxes(graph, "bbox:0"), says_boxes(graph, "box_scores"), says_scores(graph, "bbox")
    (True, False, False)
    >>> graph = parse("loc = Placeholder(dtype=float, shape=[?,4])\\ndelta = Placeholder(dtype=float, shape=[?,9])")
    >>> says_boxes(graph, "loc"), says_boxes(graph, "delta")
    (True, False)
    """
    node = graph.find_producer(output, SAME_VALUES | VIEWS_OF_FILES)
    is_shares = node is not None and node.op in ("Softmax", "tfl.softmax")
    if is_shares or _NAMES_OF_SCORES.search(output):
        return False
    if _NAMES_OF_BOXES.search(output):
        return True
    dims = infer(graph, outputs=[output]).shape(canonical(output)).dims if _NAMES_OF_PLACES.search(output) else None
    return dims is not None and dims[-1:] == (4,)


def may_give_logits(graph: Graph, output: str) -> bool:
    """Whether numbers come straight from a layer, as logits do, through no sigmoid that makes shares of them; or
    through a tanh, which is above 0 where its logit is.

    >>> from pocketgraph.graph.text_format import parse
    >>> graph = parse('''
    ...     x = Placeholder(dtype=float)
    ...     w = Placeholder(dtype=float)
    ...     score = MatMul(x, w, T=float)
    ...     share = Sigmoid(score, T=float)
    ... ''')
    >>> may_give_logits(graph, "score"), may_give_logits(graph, "share")
    (True, False)
    """
    node = graph.find_producer(output, SAME_VALUES | VIEWS_OF_FILES)
    return node is not None and node.op in _LAYERS | _SIGNED


def gives_actions(graph: Graph, output: str) -> bool:
    """Whether numbers come from a tanh, as a policy's actions do, and no name says that they are scores of classes.

    >>> from pocketgraph.graph.text_format import parse
    >>> graph = parse("x = Placeholder(dtype=float)\\naction = Tanh(x, T=float)\\nclass_score = Tanh(x, T=float)")
    >>> gives_actions(graph, "action"), gives_actions(graph, "class_score"), gives_actions(graph, "x")
    (True, False, False)
    """
    node = graph.find_producer(output, SAME_VALUES | VIEWS_OF_FILES)
    return node is not None and node.op in _SIGNED and not _NAMES_OF_SCORES.search(output)


def apart(graph: Graph, name: str) -> str:
    """A tensor without the others that pass through the same node, as all outputs of a SavedModel do."""
    source = find_source(graph.nodes, name, ("IdentityN",))
    return name if source in (name, None) else canonical(source)


def picked_note(output: str, scores: str) -> str:
    """What to say where the scores are taken in place of the answer."""
    return f"'{output}' is picked from '{scores}', whose scores are taken"


def outputs_of_numbers(graph: Graph, names: Sequence[str], notify: Callable[[str], None]) -> list[str]:
    """Outputs without texts, such as names of classes, which devices do not give; all of them where all are texts."""
    if len(names) == 1:
        return list(names)
    inferred = infer(graph, outputs=names)
    texts = [name for name in names if inferred.dtype(canonical(name)) is STRING]
    if not texts or len(texts) == len(names):
        return list(names)
    left_out = ", ".join(name.removesuffix(":0") for name in texts)
    notify(f"texts are left out, which are the app's: {left_out}")
    return [name for name in names if name not in texts]
