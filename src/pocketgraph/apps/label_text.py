"""Says what texts are with a classifier of texts: a graph, or a file with the graph that reads texts for it."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence

import numpy as np

from pocketgraph.datasets.class_labels import best_classes, of_two
from pocketgraph.datasets.class_scores import may_give_logits
from pocketgraph.datasets.evaluation_dataset import open_dataset
from pocketgraph.datasets.named_arrays import SampleSource
from pocketgraph.datasets.text_tables import read_text_table
from pocketgraph.errors import UsageError
from pocketgraph.graph import Graph
from pocketgraph.quantization.class_names import class_names
from pocketgraph.quantization.evaluation.runnable_models import GraphModel, RunnableModel, open_model
from pocketgraph.quantization.evaluation.text_models import with_texts

Prediction = tuple[str, int, float]
"""(label, index, score)."""


class TextLabeler:
    """Labels texts with one model.

    Args:
        model: a graph, or the path of a model that takes texts; or a file of the part behind them.
        labels: one a score; by default those of a table of the graph, or else indexes.
        reader: the graph whose part in front of ``model`` reads texts, where ``model`` does not.
        outputs: the tensor of the scores; by default the likely one.
        threads: how many to compute with.

    Attributes:
        labels: of the scores.
        scores: the graph and the tensor that gives them; None of a file without its graph.

    Raises:
        UsageError: the model takes no texts.
    """

    def __init__(
        self,
        model: Graph | str | os.PathLike[str],
        labels: Sequence[str] = (),
        *,
        reader: Graph | str | os.PathLike[str] | None = None,
        outputs: Sequence[str] | None = None,
        threads: int | None = None,
    ) -> None:
        opened = open_model(model, outputs=outputs, threads=threads)
        models: list[RunnableModel] = [opened]
        if reader is not None:
            models = with_texts([open_model(reader, outputs=outputs, threads=threads), opened])
        graphs = (one for one in (opened, *models) if isinstance(one, GraphModel))
        self.scores = next(((one.graph, one.outputs[0]) for one in graphs), None)
        self._model = models[-1]
        named = class_names(models[0].graph, models[0].outputs[0]) if isinstance(models[0], GraphModel) else ()
        self.labels = tuple(labels or named)
        if not any(item.takes_text for item in self._model.inputs):
            taken = ", ".join(f"{item.name} {list(item.shape)}" for item in self._model.inputs)
            hint = "" if isinstance(opened, GraphModel) else "name the graph that it was made from as well"
            raise UsageError(f"the model takes no texts, but {taken}", hint=hint)

    def __call__(self, source: SampleSource | list[str], top: int = 3) -> Iterator[list[Prediction]]:
        """The best of each text, best first.

        Args:
            source: texts: a list of them, or a path, see ``text_samples.read_texts``.
            top: how many to give.

        Raises:
            UsageError: there are no texts, or the output is no row of scores.
            FormatError: a file cannot be read.
        """
        if isinstance(source, str) and os.path.isdir(source):  # those beside folders count, too
            source = texts_of(source)
        given: SampleSource = np.array(source, object) if isinstance(source, list) else source
        for sample in open_dataset(given, self._model.inputs).samples():
            scores = np.asarray(self._model.run(sample)[0])
            if scores.dtype.kind not in "fiu":
                raise UsageError(f"the output is {scores.dtype}, not scores", hint="name another output")
            is_logit = self.scores is not None and may_give_logits(*self.scores)
            best = best_classes(of_two(scores, self.labels, is_logit=is_logit).reshape(-1), (), top)
            yield [(self.labels[at] if at < len(self.labels) else str(at), at, score) for at, score in best]


def texts_of(source: str) -> list[str]:
    """The texts at a path, in the order in which they are labelled."""
    table = read_text_table(source)
    return list(table.columns[table.text])
