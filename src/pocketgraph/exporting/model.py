"""What every exporter is given, and what it gives back."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeAlias

import numpy as np

from pocketgraph.errors import UsageError, did_you_mean, option, shapes_option
from pocketgraph.graph import DType, Graph
from pocketgraph.graph.tensor import Array
from pocketgraph.quantization.audio_preprocessing import AudioPreprocessing
from pocketgraph.quantization.core.quantization_options import Progress, silent
from pocketgraph.quantization.text_preprocessing import TextPreprocessing
from pocketgraph.runtime.feeding.open_shapes import is_told_by_weights
from pocketgraph.runtime.session import Session

Feeds: TypeAlias = Mapping[str, Array]
"""One set of inputs of an entry point, by their public names."""
Samples: TypeAlias = Callable[[], Iterable[Feeds]]
"""Gives all samples anew each time it is called."""
Run: TypeAlias = Callable[[str, Feeds], dict[str, Array]]
"""Runs what was written: the name of an entry point and its inputs make its outputs, by their public names."""
CODED_TOLERANCE = 0.02
"""Of a model that computes with few bits: the mean difference from the reference engine, as a share of the peak."""
Source: TypeAlias = "Graph | str | os.PathLike[str]"


@dataclass(frozen=True)
class Port:
    """One input or output of an entry point.

    Attributes:
        name: the public name: the key of the SignatureDef, else the tensor's name without ``:0``.
        tensor: the tensor of the graph, as ``n:0``.
        dtype: the element type.
        shape: the declared sizes, None where one is open; None as a whole where not even the rank is known.
        sizes: the shape with a number for each open size: what samples have, else 1, else 224 for a picture's sides.
            Of an output they are those that follow from the inputs' sizes; None where they are not known.
        is_told: whether samples or the caller tell the sizes that the shape leaves open.
    """

    name: str
    tensor: str
    dtype: DType
    shape: tuple[int | None, ...] | None
    sizes: tuple[int, ...] | None
    is_told: bool = False

    @property
    def is_fixed(self) -> bool:
        """Whether no size is open."""
        return self.shape is not None and None not in self.shape


@dataclass(frozen=True)
class EntryPoint:
    """A function that the exported model offers.

    Attributes:
        name: the signature's key; ``serving_default`` for a graph without signatures.
        inputs: what goes in, in order.
        outputs: what comes out, in order.
        reads: the values of variables that go in as well, by the variables' names.
        writes: their new values, which come out as well.
    """

    name: str
    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]
    reads: tuple[Port, ...] = ()
    writes: tuple[Port, ...] = ()

    @property
    def whole(self) -> EntryPoint:
        """The function without variables: their values are inputs and outputs behind the others."""
        inputs, outputs = (*self.inputs, *self.reads), (*self.outputs, *self.writes)
        return replace(self, inputs=inputs, outputs=outputs, reads=(), writes=())

    @property
    def fetches(self) -> list[str]:
        """The tensors that come out."""
        return [port.tensor for port in self.outputs]

    def by_tensor(self, feeds: Feeds) -> dict[str, Array]:
        """A set of inputs as a session takes it."""
        return {port.tensor: feeds[port.name] for port in self.inputs}

    def run(self, session: Session, feeds: Feeds) -> dict[str, Array]:
        """What the graph makes of a set of inputs, by public name."""
        found = session.run(self.fetches, self.by_tensor(feeds))
        return {port.name: np.asarray(array) for port, array in zip(self.outputs, found, strict=True)}


@dataclass(frozen=True)
class Normalization:
    """How a picture's values from 0 to 255 are fed: ``(value - mean) / std``, one number each, or one a channel."""

    mean: tuple[float, ...] = (0.0,)
    std: tuple[float, ...] = (1.0,)

    def __post_init__(self) -> None:
        if 0 in self.std:
            raise UsageError(f"{option('input_std')} is 0; pixels are divided by it")
        if not self.mean or len(self.mean) != len(self.std):
            raise UsageError("mean and std of a normalization have one number each, or one a channel")


@dataclass(frozen=True)
class About:
    """What a person should know of the model; all of it may be missing.

    Attributes:
        name: of the model.
        description: a sentence or more.
        version: of the model, such as ``v1``.
        author: who made it.
        license: on what terms it is given.
    """

    name: str = ""
    description: str = ""
    version: str = ""
    author: str = ""
    license: str = ""


@dataclass(frozen=True)
class ExportModel:
    """A graph on its way out: frozen, with fixed values in the place of switches, and what goes with it.

    Attributes:
        graph: no variables; every entry point's inputs are tensors of it.
        entries: what the model offers, the first one being the main one.
        labels: the name of each class of the first output of the first entry; empty where nobody gave them.
        normalization: of a picture that goes into the first input; None where nobody said.
        calibration: of scores, a line for each class, as ``scale,slope,offset[,min_score]`` or empty; see
            docs/shipping.md.
        about: see About.
        samples: realistic inputs of the first entry point; None where nobody gave any.
        sample_count: how many samples there are.
        threads: how many to compute with.
        front: what was cut off because it reads recordings; None where nothing was.
        texts: what was cut off because it reads texts; None where nothing was.
        sample_rate: samples a second of a recording that goes into the first input; None where it is none.
        notes: what was left out, and why.
        progress: told how far it is.
        variables: the first values of variables that entry points read and change; ``graph`` has none itself.
        original: opens a session of the graph with its variables, as it was given; None where there are none.
    """

    graph: Graph
    entries: tuple[EntryPoint, ...]
    labels: tuple[str, ...] = ()
    normalization: Normalization | None = None
    calibration: tuple[str, ...] = ()
    about: About = About()
    samples: Samples | None = None
    sample_count: int = 0
    threads: int = 1
    front: AudioPreprocessing | None = None
    texts: TextPreprocessing | None = None
    sample_rate: int | None = None
    notes: tuple[str, ...] = ()
    progress: Progress = silent
    variables: Mapping[str, Array] = field(default_factory=dict)
    original: Callable[[], Session] | None = None

    @property
    def main(self) -> EntryPoint:
        """The first entry point."""
        return self.entries[0]

    def entry(self, name: str) -> EntryPoint:
        """The entry point of this name.

        Raises:
            UsageError: there is none.
        """
        for found in self.entries:
            if found.name == name:
                return found
        hint = did_you_mean(name, (entry.name for entry in self.entries))
        raise UsageError(f"the model has no entry point '{name}'", hint=hint)


@dataclass
class Written:
    """What an exporter made.

    Attributes:
        notes: what a person should know, a sentence each; warnings begin with ``warning:``.
        run: runs what was written, on this machine; None where it cannot, and ``unchecked`` says why.
        tolerance: the largest difference from the reference engine that passes, as a share of the output's peak.
        is_coded: whether it computes with few bits; the mean difference counts then instead of the largest one.
        sigmoid_error: how far a sigmoid of its engine may be off, of 1, however small the result is.
        unchecked: why it was not run.
        seconds: times one run of an entry point by itself, where ``run`` does more than run.
        is_timed: whether the time of a run here says anything.
        has_main_alone: whether only the main entry point was written, as the form has no room for others.
        draws: the nodes of the main entry point whose random numbers the run time draws itself.
    """

    run: Run | None = None
    notes: list[str] = field(default_factory=list)
    tolerance: float = 1e-4
    is_coded: bool = False
    sigmoid_error: float = 0.0
    unchecked: str = ""
    seconds: Callable[[str, Feeds], float] | None = None
    is_timed: bool = True
    has_main_alone: bool = False
    draws: tuple[str, ...] = ()


def check_sizes(model: ExportModel, target: str) -> list[str]:
    """Refuses open sizes of the main entry point that nothing tells: no caller, no samples, and no weights, which take
    one number of values alone. The batch becomes 1. Notes of those that are fixed.

    Args:
        target: what needs fixed sizes, for the message: ``a C library``.

    Raises:
        UsageError: there are some.
    """
    notes, refused = [], []
    has_batch = any(map(_is_open_in_batch, model.main.inputs))
    for port in model.main.inputs:
        if port.is_fixed:
            continue
        is_number_each = port.shape is not None and len(port.shape) == 1 and port.dtype.is_integer
        if _is_open_in_batch(port) or (is_number_each and has_batch and not port.is_told):  # the last word, a user
            notes.append(f"the batch of '{port.name}' is fixed to {port.sizes[0] if port.sizes else 1}")
        elif port.is_told:
            notes.append(f"the sizes of '{port.name}' are fixed to {list(port.sizes or ())}")
        elif port.sizes and is_told_by_weights(model.graph, port.tensor, port.sizes, model.main.fetches):
            notes.append(f"the sizes of '{port.name}' are fixed to {list(port.sizes)}, which its weights take")
        else:
            refused.append(port)
    if refused:
        names = ", ".join(f"'{port.name}' {_shape(port)}" for port in refused)
        sizes = {port.name: port.sizes or (1,) for port in refused}
        raise UsageError(
            f"{target} needs fixed sizes, and the graph leaves some open: {names}",
            hint=f"say them: {shapes_option(sizes)}",
        )
    return notes


def _is_open_in_batch(port: Port) -> bool:
    """Whether the first of several sizes is all that is open."""
    return not port.is_fixed and port.shape is not None and len(port.shape) > 1 and None not in port.shape[1:]


def _shape(port: Port) -> str:
    if port.shape is None:
        return "of unknown rank"
    return "[" + ", ".join("?" if size is None else str(size) for size in port.shape) + "]"
