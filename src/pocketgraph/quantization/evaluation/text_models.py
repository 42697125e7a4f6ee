"""Files without the part that reads texts, judged on texts: a graph that has the part reads them."""

from __future__ import annotations

import time
from collections.abc import Sequence

from pocketgraph.datasets.model_input import ModelInput
from pocketgraph.errors import UsageError
from pocketgraph.graph import canonical
from pocketgraph.graph.tensor import Array
from pocketgraph.quantization.core.program_runner import Sample
from pocketgraph.quantization.evaluation.runnable_models import GraphModel, LiteRTModel, RunnableModel
from pocketgraph.quantization.text_cut import text_preprocessing_at
from pocketgraph.quantization.text_inputs import reads_spectrum, text_inputs, with_shapes
from pocketgraph.quantization.text_preprocessing import TextPreprocessing


class BehindTexts:
    """A file that takes what a graph makes of texts.

    Args:
        model: the file.
        front: the part of the graph that reads them.
    """

    def __init__(self, model: LiteRTModel | GraphModel, front: TextPreprocessing) -> None:
        self.model, self.front = model, front
        self.path, self.size = model.path, model.size
        self.inputs: tuple[ModelInput, ...] = front.inputs
        self.seconds = 0.0  # that the last run of the file took

    def run(self, sample: Sample) -> list[Array]:
        """The outputs as numbers for one text."""
        read = self.front(sample)
        start = time.perf_counter()
        found = self.model.run(read)
        took = time.perf_counter() - start
        self.seconds = self.model.seconds if isinstance(self.model, LiteRTModel) else took
        return found

    def identity(self) -> str:
        """Of the file."""
        return self.model.identity()

    def shared_steps(self, reference: Array, answer: Array) -> tuple[Array, Array]:
        """An answer of the graph and one of the file without the steps that only one of them has.

        The graph answers for each step of a text, the file for as many as texts are padded or cut to.
        """
        lengths = {size for cut in self.front.cuts if cut.is_padded for size in cut.shape}
        if reference.ndim != answer.ndim:
            return reference, answer
        pairs = list(zip(reference.shape, answer.shape, strict=True))
        if not all(own == padded or padded in lengths for own, padded in pairs):
            return reference, answer
        shared = tuple(slice(min(pair)) for pair in pairs)
        return reference[shared], answer[shared]


def with_texts(models: Sequence[RunnableModel]) -> list[RunnableModel]:
    """The models, those files on texts that take what is behind the part that reads them of the first graph that does.

    Raises:
        UsageError: a file takes something else.
    """
    graphs = (model for model in models if isinstance(model, GraphModel))
    graph = next((one for one in graphs if text_inputs(one.graph, one.outputs, tuple(one.values))), None)
    if graph is None:
        return list(models)
    fed = {canonical(item.name) for item in graph.inputs}
    made: list[RunnableModel] = []
    for model in models:
        if (
            not isinstance(model, LiteRTModel | GraphModel)
            or any(item.dtype.kind == "O" for item in model.inputs)
            or (fed >= {canonical(item.name) for item in model.inputs})
        ):
            made.append(model)
            continue
        heard = graph.graph
        if reads_spectrum(heard, graph.outputs):  # which may leave open how long that is
            heard = with_shapes(heard, {item.name: item.shape for item in graph.inputs})
        front = text_preprocessing_at(heard, graph.outputs, model.declared, tuple(graph.values))
        if front is None and isinstance(model, GraphModel):
            made.append(model)  # perhaps with inputs of other names
            continue
        if front is None:
            taken = ", ".join(item.name for item in model.inputs)
            raise UsageError(
                f"it takes {taken}, which {graph.path} does not make of texts",
                where=model.path,
                hint="give the graph that it was made from first",
            )
        made.append(BehindTexts(model, front))
    return made
