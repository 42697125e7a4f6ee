"""Which output of a model are scores of classes, and whether one is a share of two classes."""

from __future__ import annotations

import math
from dataclasses import replace

from pocketgraph.apps.picture_model import SHARES_OF_TWO
from pocketgraph.datasets.class_scores import SHARES, VIEWS_OF_FILES
from pocketgraph.errors import UsageError
from pocketgraph.exporting.labels import scores_of
from pocketgraph.exporting.model import ExportModel
from pocketgraph.graph.op_traits import SAME_VALUES


def scores_first(model: ExportModel) -> ExportModel:
    """The model with what labels are of as the first of its outputs, which apps show."""
    try:
        scores = scores_of(model)
    except UsageError:
        return model  # which is told where a kind of project takes labels
    entry = replace(model.main, outputs=(scores, *(port for port in model.main.outputs if port is not scores)))
    return replace(model, entries=(entry, *model.entries[1:]))


def gives_scores(model: ExportModel, *, takes_a_picture: bool) -> bool:
    """Whether the first output is a score for each class."""
    try:
        scores_of(model)
    except UsageError:
        return False
    if model.labels:
        return True
    shares = (*SHARES, "LogSoftmax", "tfl.softmax", "tfl.log_softmax", "tfl.logistic")
    return len(model.main.outputs) == 1 and (takes_a_picture or _ends_in(model, shares))  # others may be forecasts


def is_share_of_two(model: ExportModel) -> bool:
    """Whether the first output is one sigmoid's, the share of the second of two named classes."""
    sizes = model.main.outputs[0].sizes
    is_one = sizes is not None and math.prod(sizes) == 1
    return is_one and len(model.labels) == 2 and _ends_in(model, SHARES_OF_TWO)


def _ends_in(model: ExportModel, ops: tuple[str, ...]) -> bool:
    node = model.graph.find_producer(model.main.outputs[0].tensor, SAME_VALUES | VIEWS_OF_FILES)
    return node is not None and node.op in ops
