"""Proves two models equal within a tolerance: the same feeds through both, and how far the outputs are apart."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pocketgraph.errors import RunError, UsageError, did_you_mean, option
from pocketgraph.graph import Graph, canonical, node_name
from pocketgraph.graph.model_file import coded, is_model_file, numbers
from pocketgraph.runtime.samples import sample_feeds, sample_fetches
from pocketgraph.runtime.session import Session

Array = np.ndarray[Any, Any]
Model = Graph | str | os.PathLike[str]
TOLERANCE = 1e-4


@dataclass(frozen=True)
class Difference:
    """How far one output of B is from that of A.

    Attributes:
        name: the output.
        shape: its shape in A.
        largest: the largest absolute difference; infinite where one is NaN or infinite and the other is not.
        mean: the mean absolute difference.
        largest_relative: ``largest`` as a share of the largest magnitude in A.
        mean_relative: ``mean`` as a share of that.
        worst: where the largest difference is.
        top1: the share of rows (along the last dimension) whose largest element is the same one; None for outputs
            without rows of at least two.
        problem: what cannot be compared (another shape or type), else "".
        passed: whether it is within the tolerance, and ``top1`` is high enough where that was asked for.
    """

    name: str
    shape: tuple[int, ...]
    largest: float = 0.0
    mean: float = 0.0
    largest_relative: float = 0.0
    mean_relative: float = 0.0
    worst: tuple[int, ...] = ()
    top1: float | None = None
    problem: str = ""
    passed: bool = True


@dataclass(frozen=True)
class Report:
    """The comparison of two models.

    Attributes:
        outputs: one entry an output, over all runs.
        tolerance: the largest relative difference that passes.
        runs: how many sets of feeds went through.
    """

    outputs: tuple[Difference, ...]
    tolerance: float
    runs: int

    @property
    def passed(self) -> bool:
        """Whether every output passed."""
        return all(output.passed for output in self.outputs)

    def __bool__(self) -> bool:
        return self.passed


def verify(
    a: Model,
    b: Model,
    inputs: Mapping[str, Any] | str | os.PathLike[str] | None = None,
    outputs: Sequence[str] | None = None,
    tolerance: float = TOLERANCE,
    *,
    top1: float | None = None,
    runs: int = 1,
    seed: int = 0,
    engine: str | None = None,
    threads: int | None = None,
) -> Report:
    """Runs two models on the same feeds and compares their outputs.

    >>> from pocketgraph.graph.text import parse
    >>> exact = parse("x = Placeholder(dtype=float, shape=[2])\\ny = Relu(x, T=float)")
    >>> rough = parse("x = Placeholder(dtype=float, shape=[2])\\ny = Relu6(x, T=float)")
    >>> report = verify(exact, rough, {"x": [1.0, 8.0]})
    >>> report.passed, report.outputs[0].largest, report.outputs[0].largest_relative
    (False, 2.0, 0.25)

    Args:
        a: the model that is right: a Graph or a model file.
        b: the model to be judged.
        inputs: arrays by tensor name, or the path of an .npz of them (see ``read_feeds``); by default values made up
            from the placeholders of ``a``.
        outputs: the tensors to compare; by default the outputs that ``a`` declares or is likely to have and ``b``
            has too.
        tolerance: the largest difference that passes, as a share of the largest magnitude of the output in ``a``.
        top1: the least share of rows whose largest element must be the same.
        runs: how many sets of made-up feeds.
        seed: for made-up feeds.
        engine, threads: as for Session.

    Raises:
        UsageError: feeds or outputs that the models do not have.
        RunError: one of them does not run.
    """
    if runs < 1:
        raise UsageError(f"a comparison needs at least 1 run, not {runs}")
    if tolerance < 0:
        raise UsageError(f"a tolerance is not negative, {tolerance} is")
    with Session(a, threads, engine=engine) as first, Session(b, threads, engine=engine) as second:
        wanted = list(outputs) if outputs is not None else _common_outputs(first.graph, second.graph)
        same = Counterparts(first.graph, second.graph)
        for side, session, called in (("first", first, wanted), ("second", second, list(map(same.output, wanted)))):
            missing = [n for n in called if node_name(n) not in session.graph]
            if missing:
                raise UsageError(
                    f"the {side} model has no output '{missing[0]}'", hint=did_you_mean(missing[0], session.graph.nodes)
                )
        if inputs is None:
            sets = [same.without_defaults(sample_feeds(first.graph, wanted, seed + run)) for run in range(runs)]
        else:
            given = inputs if isinstance(inputs, Mapping) else read_feeds(inputs, first.graph)
            sets = [dict(given)]
        pairs: list[list[tuple[Array, Array]]] = [[] for _ in wanted]
        for number, feeds in enumerate(sets):
            try:
                ours = first.run(wanted, feeds)
            except RunError as error:
                if inputs is not None:
                    raise
                feeds = sets[number] = {name: plain_values(value) for name, value in feeds.items()}
                ours = _with_made_up(first, wanted, feeds, error)
            theirs = same.feeds(feeds)
            results = second.run([same.output(name) for name in wanted], theirs)
            for pair, name, x, y in zip(pairs, wanted, ours, results, strict=True):
                pair.append((numbers(first.graph, name, x), numbers(second.graph, same.output(name), y)))
    found = [compared(name, pair, tolerance, top1) for name, pair in zip(wanted, pairs, strict=True)]
    return Report(tuple(found), tolerance, len(sets))


class Counterparts:
    """What the tensors of one model are called in another: the same, or, in a LiteRT file, by their public names."""

    def __init__(self, a: Graph, b: Graph) -> None:
        self._a, self._b = a, b
        self._inputs: dict[str, str] = {}
        self._outputs: dict[str, str] = {}
        if is_model_file(b):
            for key, signature in a.signatures.items():
                other = b.signatures.get(key)
                if other is not None:
                    for mine, theirs, found in (
                        (signature.inputs, other.inputs, self._inputs),
                        (signature.outputs, other.outputs, self._outputs),
                    ):
                        found.update({canonical(mine[name]): theirs[name] for name in mine if name in theirs})

    def output(self, name: str) -> str:
        """An output's name in the other model."""
        return self._outputs.get(canonical(name), name)

    def without_defaults(self, feeds: Mapping[str, Array]) -> dict[str, Array]:
        """Made-up feeds without those for placeholders with a default that a LiteRT file has not kept as inputs."""
        if not is_model_file(self._b):
            return dict(feeds)
        kept = {name for name in feeds if self.feeds({name: feeds[name]})}
        return {n: v for n, v in feeds.items() if n in kept or self._a.producer(n).op != "PlaceholderWithDefault"}

    def feeds(self, feeds: Mapping[str, Array]) -> dict[str, Array]:
        """Feeds for the other model: those that it takes, codes where it takes codes."""
        b = self._b
        called = {self._inputs.get(canonical(name), name): value for name, value in feeds.items()}
        if not is_model_file(b):
            return {name: value for name, value in called.items() if node_name(name) in b}
        taken = {tensor for signature in b.signatures.values() for tensor in signature.inputs.values()}
        return {name: coded(b, name, np.asarray(value)) for name, value in called.items() if canonical(name) in taken}


def _with_made_up(session: Session, wanted: list[str], feeds: Mapping[str, Array], before: RunError) -> list[Array]:
    """The results of plain feeds, where random ones failed ``before``.

    Raises:
        RunError: the model does not take them either.
    """
    try:
        return session.run(wanted, feeds)
    except RunError:
        hint = f"the feeds were made up, pass some that fit with {option('inputs')}"
        raise RunError(before.what, where=before.where, hint=hint) from before


def plain_values(value: Array) -> Array:
    """Ones and words, where random integers are no lengths and empty texts have no words."""
    if value.dtype.kind == "O":
        return np.full(value.shape, b"a", object)
    return np.ones_like(value) if value.dtype.kind in "iu" and value.dtype.itemsize > 1 else value


def _common_outputs(a: Graph, b: Graph) -> list[str]:
    """The outputs that A has for certain or is likely to have, as far as B has them too."""
    likely = sample_fetches(a)
    same = Counterparts(a, b)
    common = [name for name in likely if node_name(same.output(name)) in b]
    if not common:
        raise UsageError(
            f"none of the first model's likely outputs ({', '.join(likely)}) is in the second",
            hint=f"name the outputs to compare, e.g. {option('outputs')}=softmax",
        )
    return common


def compared(
    name: str, pairs: Sequence[tuple[Array, Array]], tolerance: float, top1: float | None = None
) -> Difference:
    """The difference of one output over several runs; see Difference."""
    shape = pairs[0][0].shape
    for a, b in pairs:
        if a.shape != b.shape:
            return Difference(name, shape, problem=f"shape {list(a.shape)} against {list(b.shape)}", passed=False)
        if a.dtype != b.dtype and (a.dtype.kind not in "fV" or b.dtype.kind not in "fV"):
            return Difference(name, shape, problem=f"{a.dtype} against {b.dtype}", passed=False)
    if pairs[0][0].dtype == object:
        wrong = [np.argwhere(a != b) for a, b in pairs]
        count = sum(len(found) for found in wrong)
        worst = next((tuple(int(i) for i in found[0]) for found in wrong if len(found)), ())
        return Difference(
            name, shape, problem=f"{count} strings differ" if count else "", worst=worst, passed=not count
        )
    largest, total, elements, peak, worst = 0.0, 0.0, 0, 0.0, ()
    rows, agreeing = 0, 0
    for a, b in pairs:
        distance = _distance(a, b)
        if distance.size:
            place = int(np.argmax(distance))
            if float(distance.reshape(-1)[place]) > largest or not worst:
                largest = max(largest, float(distance.reshape(-1)[place]))
                worst = tuple(int(i) for i in np.unravel_index(place, distance.shape))
            total += float(distance.sum())
            elements += distance.size
            magnitudes = np.abs(_wide(a))
            peak = max(peak, float(np.max(magnitudes[np.isfinite(magnitudes)], initial=0.0)))
        if a.ndim and a.shape[-1] > 1 and a.size and a.dtype.kind in "fiuV":
            same = np.argmax(_wide(a), axis=-1) == np.argmax(_wide(b), axis=-1)
            rows += same.size
            agreeing += int(np.count_nonzero(same))
    mean = total / elements if elements else 0.0
    agreement = agreeing / rows if rows else None
    exact = pairs[0][0].dtype.kind in "b"
    limit = 0.0 if exact else tolerance * peak
    passed = largest <= limit and (top1 is None or agreement is None or agreement >= top1)
    scale = peak or 1.0
    return Difference(name, shape, largest, mean, largest / scale, mean / scale, worst, agreement, "", passed)


def _wide(values: Array) -> Array:
    wide: Array = values.astype(np.complex128 if values.dtype.kind == "c" else np.float64)
    return wide


def _distance(a: Array, b: Array) -> Array:
    """|a - b|; 0 where both are the same NaN or infinity, infinite where only one is."""
    with np.errstate(all="ignore"):
        x, y = _wide(a), _wide(b)
        distance: Array = np.asarray(np.abs(x - y))
        distance[(x == y) | (np.isnan(x) & np.isnan(y))] = 0.0
        distance[np.isnan(distance)] = np.inf
    return distance


def read_feeds(path: str | os.PathLike[str], graph: Graph) -> dict[str, Array]:
    """Feeds from an .npz file whose keys are tensor names.

    ``x:0`` may also be written ``x`` or ``x_0``, with or without ``in_`` before it, and ``/`` as ``_``; keys that
    begin with ``out_`` are left out. Strings are kept as arrays of bytes ('S').

    Raises:
        UsageError: it is no .npz, holds Python objects, or a key names no tensor.
    """
    where = os.fspath(path)
    try:
        with open(path, "rb") as file:  # a file that NumPy opens stays open when it is damaged
            data = np.load(file, allow_pickle=False)
            if isinstance(data, np.ndarray):
                raise UsageError("this is one array (.npy)", where=where, hint=f"say which input it is: NAME={where}")
            with data:
                arrays = {key: data[key] for key in data.files}
    except UsageError:
        raise
    except FileNotFoundError:
        raise UsageError("there is no such file", where=where) from None
    except Exception as error:  # NumPy's and zipfile's, of many kinds
        said = " ".join(str(error).split())
        if "pickle" in said.lower():
            said = "it holds Python objects, which are not loaded from files"
        raise UsageError(f"not a readable .npz: {said}", where=where) from None
    spellings = _spellings(graph)
    feeds: dict[str, Array] = {}
    for key, value in arrays.items():
        if key.startswith("out_") and key not in spellings:
            continue
        name = tensor_of_key(key, graph, spellings)
        if name in feeds:
            raise UsageError(f"two keys feed '{name}'", where=where)
        feeds[name] = value
    return feeds


def tensor_of_key(key: str, graph: Graph, spellings: Mapping[str, str]) -> str:
    """The tensor that an .npz key means.

    Raises:
        UsageError: none.
    """
    for spelling in (key, key.removeprefix("in_")):
        if node_name(spelling) in graph:
            return canonical(spelling)
        if spelling in spellings:
            return spellings[spelling]
    raise UsageError(f"'{key}' names no tensor of the model", hint=did_you_mean(key.removeprefix("in_"), graph.nodes))


def _spellings(graph: Graph) -> dict[str, str]:
    """Tensor names by the ways in which file formats write them; what two tensors share is left out."""
    found: dict[str, str | None] = {}
    for name in graph.nodes:
        for port in range(4):
            tensor = f"{name}:{port}"
            for spelling in {
                f"{name}_{port}",
                f"{name}_{port}".replace("/", "_"),
                *([name.replace("/", "_")] * (not port)),
            }:
                found[spelling] = tensor if found.get(spelling, tensor) == tensor else None
    return {spelling: tensor for spelling, tensor in found.items() if tensor is not None}


def read_array(path: str) -> Array:
    """One array from an .npy file, or from an .npz that holds just one.

    Raises:
        UsageError: it is neither.
    """
    try:
        with open(path, "rb") as file:
            data = np.load(file, allow_pickle=False)
            if isinstance(data, np.ndarray):
                return data
            with data:
                if len(data.files) != 1:
                    many = f"it holds {len(data.files)} arrays"
                    raise UsageError(many, where=path, hint="give the .npz without a name")
                only: Array = data[data.files[0]]
                return only
    except UsageError:
        raise
    except FileNotFoundError:
        raise UsageError("there is no such file", where=path) from None
    except Exception as error:
        raise UsageError(f"not a readable .npy or .npz: {' '.join(str(error).split())}", where=path) from None
