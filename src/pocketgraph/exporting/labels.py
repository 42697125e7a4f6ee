"""Labels and score calibration of a classifier, and whether they fit the output that they are for."""

from __future__ import annotations

from collections.abc import Sequence

from pocketgraph.datasets.class_scores import VIEWS_OF_FILES, apart, says_boxes
from pocketgraph.errors import UsageError, option
from pocketgraph.exporting.model import ExportModel, Port
from pocketgraph.graph.op_traits import SAME_VALUES

MOST_VALUES = 4  # in a line of score calibration


def scores_of(model: ExportModel) -> Port:
    """The output that gives a score for each class: the only one that ends in a softmax, else the main entry point's
    first one.

    Raises:
        UsageError: it is no such output: ``[1, N]`` or ``[1, 1, 1, N]`` with N of 2 or more, of floats or bytes, whose
            name says nothing of boxes.
    """
    ports = model.main.outputs
    shares = [port for port in ports if _is_row(port) and _are_shares(model, port)] if len(ports) > 1 else []
    port = shares[0] if len(shares) == 1 else ports[0]
    is_box = says_boxes(model.graph, port.tensor)
    if is_box or not _is_row(port):
        sizes = port.sizes
        text = "of unknown shape" if sizes is None else f"{port.dtype.name}{list(sizes)}"
        text += ", by its name of boxes" if is_box else ""
        raise UsageError(
            f"labels are for scores of classes, [1, N]; the output '{port.name}' is {text}",
            hint=f"name the scores with {option('outputs')}, or leave {option('labels')} out",
        )
    return port


def _is_row(port: Port) -> bool:
    sizes = port.sizes
    is_row = sizes is not None and len(sizes) in (2, 4) and sizes[-1] > 1 and set(sizes[1:-1]) <= {1}
    return is_row and port.dtype.name in ("float", "half", "uint8", "int8")


def _are_shares(model: ExportModel, port: Port) -> bool:
    source = apart(model.graph, port.tensor)
    node = model.graph.find_producer(source, SAME_VALUES | VIEWS_OF_FILES)
    return node is not None and node.op in ("Softmax", "tfl.softmax")


def check_count(lines: Sequence[str], classes: int, output: str, what: str = "labels") -> None:
    """Refuses lines that are not one for each class.

    Args:
        classes: how many scores the model gives.
        output: which output gives them.
        what: what the lines are.

    Raises:
        UsageError: there are more or fewer.
    """
    if len(lines) != classes:
        raise UsageError(
            f"there are {len(lines)} {what} and {classes} scores in the output '{output}'",
            hint="one line for each score, in their order",
        )


def check_labels(model: ExportModel) -> None:
    """Refuses labels or a calibration that have not one line for each class.

    Raises:
        UsageError: they do not fit, or a line is not what it should be.
    """
    if not model.labels and not model.calibration:
        return
    port = scores_of(model)
    classes = port.sizes[-1] if port.sizes else 0
    for what, lines in (("labels", model.labels), ("lines of score calibration", model.calibration)):
        if lines:
            check_count(lines, classes, port.name, what)
    for number, label in enumerate(model.labels, 1):
        if "\n" in label or "\r" in label or "\0" in label:
            raise UsageError(f"label {number} has a line break in it: {label!r}")
    for number, line in enumerate(model.calibration, 1):
        _check_line(number, line)


def _check_line(number: int, line: str) -> None:
    """A line of score calibration is empty or ``scale,slope,offset[,min_score]`` with a scale that is not negative."""
    if not line:
        return
    try:
        values = [float(part) for part in line.split(",")]
    except ValueError:
        values = []
    if not 3 <= len(values) <= MOST_VALUES or values[0] < 0:
        raise UsageError(
            f"line {number} of the score calibration is '{line}'",
            hint="a line is empty or scale,slope,offset[,min_score] with a scale of 0 or more",
        )
