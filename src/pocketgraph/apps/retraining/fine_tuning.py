"""The last layers of a base trained on together with the new head, on distorted examples."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from pocketgraph.apps.retraining.bottlenecks import Bottlenecks, content_digest
from pocketgraph.apps.retraining.example_lists import Example
from pocketgraph.apps.retraining.photo_features import DISTORTED, MIRRORED, PLAIN, FeatureModel
from pocketgraph.apps.retraining.softmax_head import Head
from pocketgraph.differentiation import add_loss, minimize, trainable
from pocketgraph.differentiation.trainable import weights
from pocketgraph.differentiation.unfolded_batch_norms import with_unfolded_batch_norms
from pocketgraph.errors import RunError, UsageError, option
from pocketgraph.graph import Graph, Node, Shape, Tensor, canonical, const, node_name
from pocketgraph.graph.dtype import FLOAT, INT32
from pocketgraph.graph.op_traits import ops_with
from pocketgraph.graph.order import reachable, topological
from pocketgraph.kernels.shapes import infer
from pocketgraph.quantization.core.resume_state import ResumeState
from pocketgraph.runtime import Session, train
from pocketgraph.transforms import TransformGraph

Array = np.ndarray[Any, Any]
LAYERS = ops_with("matrix_product", "convolution")
ONE_AT_A_TIME = "the base's layers take one example at a time, and training needs several"
SCOPE = "retrain"
FEATURES, LOGITS, LABELS, RATE = (f"{SCOPE}/{name}" for name in ("features", "logits", "labels", "rate"))
HEAD = (f"{SCOPE}/weights", f"{SCOPE}/biases")
WARM_UP, AVERAGED_FROM, AVERAGED_EVERY = 0.06, 0.4, 10
"""Of the steps: while the rate rises; from which on weights are averaged; how often, in steps."""
PLAIN_SHARE = 0.25  # of a batch
MOST_BYTES, FEWEST_VARIANTS = 1 << 30, 4  # of distorted examples that are kept in memory
STATE, SUM = "training.npz", "sum of "
BATCH = 64  # examples that are judged at a time
EVALUATIONS, PATIENCE = 10, 5
"""How often the validation set is looked at; after how many times in a row below the best training ends."""


@dataclass(frozen=True)
class Tuning:
    """How the last layers are trained.

    Attributes:
        layers: how many of them, at least; they begin where one tensor alone leads on.
        steps: of gradient descent (Adam) at most.
        rate: the learning rate at its highest.
        batch: examples a step.
        variants: distorted ones of each example.
        plain: variants that are not distorted, of which a quarter of a batch is.
    """

    layers: int
    steps: int = 800
    rate: float = 1.5e-3
    batch: int = 32
    variants: int = 24
    plain: tuple[int, ...] = (PLAIN, MIRRORED)


@dataclass(frozen=True)
class Tail:
    """The part of a base that is trained.

    Attributes:
        graph: the whole base, its constants folded.
        start: the tensor that the part takes.
        layers: names of the layers in it.
    """

    graph: Graph
    start: str
    layers: tuple[str, ...]


def tail_of(graph: Graph, source: str, cut: str, layers: int) -> Tail:
    """Where training begins: the last tensor through which all goes and behind which so many layers are.

    Args:
        graph: the base.
        source: the tensor that the picture goes in by.
        cut: the tensor that the head takes.
        layers: at least so many; all where there are fewer.

    Raises:
        UsageError: there is no layer with weights before the cut.
    """
    needed = reachable(graph, [cut])
    fed = [node.name for node in graph if node.name in needed and node.op in ops_with("placeholder")]
    folded = TransformGraph(graph, fed, [cut], ["fold_constants"])
    behind = _behind(folded, source, cut)
    trained = {node.name for node in behind if node.op in LAYERS}
    if not trained:
        raise UsageError("the base has no layers with weights before its cut", where=f"node '{node_name(cut)}'")
    last_use = {canonical(ref): i for i, node in enumerate(behind) for ref in node.data_inputs}
    last_use[canonical(cut)] = len(behind)
    made, start, left = {node.name for node in behind} | {node_name(source)}, canonical(source), len(trained)
    open_tensors = {canonical(source)}
    for i, node in enumerate(behind):
        open_tensors |= {tensor for tensor in last_use if node_name(tensor) == node.name}
        open_tensors = {tensor for tensor in open_tensors if last_use.get(tensor, -1) > i and node_name(tensor) in made}
        left -= node.name in trained
        if left < min(layers, len(trained)):
            break
        if len(open_tensors) == 1:
            (start,) = open_tensors
    names = tuple(node.name for node in _behind(folded, start, cut) if node.name in trained)
    return Tail(folded, start, names)


def fine_tuned(
    tail: Tail,
    source: FeatureModel,
    cut: str,
    head: Head,
    examples: Mapping[str, Sequence[Example]],
    labels: Sequence[str],
    tuning: Tuning,
    *,
    folder: str = "",
    class_weights: Array | None = None,
    seed: int = 0,
    threads: int | None = None,
    progress: Callable[[str, int, int], None] | None = None,
    told: Callable[[int, Mapping[str, float]], None] = lambda step, figures: None,
) -> tuple[Graph, Head]:
    """Trains the last layers of a base, and the head, on distorted examples.

    Args:
        tail: what is trained.
        source: how examples go in, and their variants.
        cut: the tensor that the head takes.
        head: where its training begins.
        examples: those that train and those that validate, by category; all open.
        labels: of the classes.
        tuning: how.
        folder: where what the layers before the tail make of examples is kept, and what an interrupted call goes on
            from; "" for nowhere.
        class_weights: [classes], how much more often examples of a class are drawn.
        seed: of the drawing.
        threads: as in Session.
        progress: told the stage, how much is done, and of how much.
        told: of a step and the figures there.

    Returns:
        the base with trained constants, and the head.

    Raises:
        GraphError: ops of the tail have no gradient; all are named.
        RunError: the loss is not finite; it says at which step and layer.
        UsageError: the examples do not fit into memory.
    """
    cached = Bottlenecks(source.at(tail.graph, tail.start), content_digest(tail.graph), folder)
    first, fitting = examples["training"], examples["validation"]
    size = cached.of(first[0].path, first[0].label).size
    most = MOST_BYTES // (4 * size * len(first)) - len(tuning.plain)
    if most < FEWEST_VARIANTS:
        gigabytes = 4e-9 * size * len(first) * (FEWEST_VARIANTS + len(tuning.plain))
        raise UsageError(
            f"what '{node_name(tail.start)}' gives for {len(first)} examples would take {gigabytes:.0f} GB",
            hint=f"train fewer layers with {option('train_layers')}",
        )
    variants = [*tuning.plain, *range(DISTORTED, DISTORTED + min(tuning.variants, most))]
    _, rows = cached.all(first, variants, progress=progress and partial(progress, "distorted examples"))
    classes = np.array([labels.index(entry.label) for entry in first], np.int64)
    validation = None
    if fitting:
        seen = cached.all(fitting)[1][:, 0]
        validation = seen, np.array([labels.index(entry.label) for entry in fitting], np.int64)
    shares = None
    if class_weights is not None:
        shares = class_weights[classes] / class_weights[classes].sum()
    training = FineTuning(tail, cut, head, cached.shape or (), tuning, threads)
    training.check(rows[:2, 0])
    key = hashlib.sha256(
        f"{cached.identity} {tuning} {seed} {shares}".encode() + rows.tobytes() + head.weights.tobytes()
    )
    state = ResumeState(os.path.join(folder, STATE) if folder else None, key.hexdigest())
    try:
        made = training.run(
            rows, classes, validation=validation, shares=shares, seed=seed, state=state,
            progress=progress and partial(progress, "training"), told=told,
        )  # fmt: skip
    except KeyboardInterrupt:
        state.save()
        raise
    state.remove()
    return made


class FineTuning:
    """The training of a tail and a head.

    Adam on softmax cross entropy, the rate rising first and falling as a cosine to 0; what comes out is the mean of the
    weights over the later steps (Izmailov et al., "Averaging Weights Leads to Wider Optima and Better Generalization",
    2018). Weights and offsets are trained; scales and statistics of batch norms stay as they are.

    Args:
        tail: the part that is trained.
        cut: the tensor that the head takes.
        head: where its training begins.
        shape: of what the tail takes, for one example.
        tuning: how.
        threads: as in Session.

    Raises:
        GraphError: ops of the tail have no gradient; all are named.
    """

    def __init__(
        self, tail: Tail, cut: str, head: Head, shape: Sequence[int], tuning: Tuning, threads: int | None = None
    ) -> None:
        self._tail, self._tuning, self._strength, self._shape = tail, tuning, head.strength, tuple(shape)
        network, self._scales = _network(tail, cut, head, self._shape)
        self._trained = [node.name for node in weights(network) if not node.name.endswith("/gamma")]
        graph = add_loss(trainable(network, self._trained), LOGITS, labels=LABELS)
        rate = Node(RATE, "Placeholder", (), {"dtype": FLOAT, "shape": Shape(())})
        graph = minimize(graph.replace([*graph, rate]), graph.outputs[0], "adam", learning_rate=RATE)
        self._session = Session(graph, threads=threads)
        self._sums: dict[str, Array] = {}
        self._count = 0

    def run(
        self,
        examples: Array,
        classes: Array,
        *,
        validation: tuple[Array, Array] | None = None,
        shares: Array | None = None,
        seed: int = 0,
        state: ResumeState | None = None,
        progress: Callable[[int, int], None] | None = None,
        told: Callable[[int, Mapping[str, float]], None] = lambda step, figures: None,
    ) -> tuple[Graph, Head]:
        """Trains.

        Args:
            examples: what the tail takes, float32 [n, variants, size].
            classes: [n].
            validation: the same, [m, size] and [m]: training ends when fewer and fewer of them are named right.
            shares: [n], how often each example is drawn; by default all alike.
            seed: of the drawing.
            state: in which an interrupted training is found, and kept.
            progress: told the steps done, and their number.
            told: of a step and the figures there.

        Returns:
            the base with trained constants, and the head.

        Raises:
            RunError: the loss is not finite; it says at which step and layer.
        """
        state = state or ResumeState()
        done, best, since = self._begun(state)
        steps = self._tuning.steps
        every = max(1, steps // EVALUATIONS)
        while done < steps and since < PATIENCE:
            stop = min(done + every, steps)
            batches = (self._batch(examples, classes, shares, seed, step) for step in range(done, stop))
            losses = train(self._session, batches, on_step=self._stepped, first=done)
            done, figures = stop, {"cross_entropy": float(np.mean(losses))}
            if validation is not None and self._count:
                right = float((self.logits(validation[0]).argmax(axis=1) == validation[1]).mean())
                figures["accuracy"] = right
                since = 0 if right >= best else since + 1
                best = max(best, right)
            self._keep(state, done, best, since)
            told(done, figures)
            if progress is not None:
                progress(done, steps)
        return self._made(self._means())

    def check(self, examples: Array) -> None:
        """Raises UsageError when several examples at a time are not answered as each alone is."""
        self._session.run(["init"])
        try:
            together = self.logits(examples)
            alone = np.concatenate([self.logits(examples[i : i + 1]) for i in range(len(examples))])
        except RunError as error:
            raise UsageError(f"{ONE_AT_A_TIME}: {error.what}", where=error.where) from error
        if together.shape != alone.shape or not np.allclose(together, alone, rtol=1e-3, atol=1e-3 * np.ptp(alone)):
            raise UsageError(ONE_AT_A_TIME, where=f"node '{node_name(self._tail.start)}'")

    def logits(self, examples: Array) -> Array:
        """Of examples, [n, size], with the means of the weights so far."""
        feeds = {f"{name}/read:0": mean for name, mean in self._means().items()}
        rows = [
            self._session.run([LOGITS], {self._tail.start: self._fed(examples[i : i + BATCH]), **feeds})[0]
            for i in range(0, len(examples), BATCH)
        ]
        return np.concatenate(rows)

    def _begun(self, state: ResumeState) -> tuple[int, float, int]:
        """Sets the variables; gives the steps that were made, the best accuracy, and evaluations since."""
        kept, graph = state.get("variables"), self._session.graph
        told = {name: kept.pop(name) for name in ("count", "done", "best", "since") if name in kept}
        self._sums = {name: kept.pop(f"{SUM}{name}") for name in self._trained if f"{SUM}{name}" in kept}
        self._session.run(["init"], {graph[f"{name}/Assign"].data_inputs[1]: kept[name] for name in kept})
        self._count = int(told.get("count", 0))
        return int(told.get("done", 0)), float(told.get("best", 0)), int(told.get("since", 0))

    def _keep(self, state: ResumeState, done: int, best: float, since: int) -> None:
        """Keeps all in one go, so that it belongs together whenever it is written."""
        numbers = {"count": self._count, "done": done, "best": best, "since": since}
        sums = {f"{SUM}{name}": total for name, total in self._sums.items()}
        told = {name: np.array(value) for name, value in numbers.items()}
        state.put("variables", {**self._session.variables(), **sums, **told})

    def _batch(self, examples: Array, classes: Array, shares: Array | None, seed: int, step: int) -> dict[str, Array]:
        rng, count = np.random.default_rng([seed, step]), self._tuning.batch
        rows = rng.choice(len(examples), count, p=shares)
        plain = len(self._tuning.plain)
        is_plain = rng.random(count) < PLAIN_SHARE
        variants = np.where(is_plain, rng.integers(0, plain, count), rng.integers(plain, examples.shape[1], count))
        warm = max(1.0, WARM_UP * self._tuning.steps)
        falling = 0.5 * (1 + np.cos(np.pi * step / self._tuning.steps))
        rate = self._tuning.rate * min(1.0, (step + 1) / warm) * falling
        fed = self._fed(examples[rows, variants])
        return {self._tail.start: fed, LABELS: classes[rows], RATE: np.array(rate, np.float32)}

    def _fed(self, rows: Array) -> Array:
        return np.ascontiguousarray(rows.reshape(-1, *self._shape), np.float32)

    def _stepped(self, number: int, _: float) -> None:
        """Adds the weights to their sums, now and then."""
        step = number + 1
        if step < AVERAGED_FROM * self._tuning.steps or step % AVERAGED_EVERY:
            return
        values = self._session.variables()
        for name in self._trained:
            self._sums[name] = self._sums.get(name, 0.0) + values[name].astype(np.float64)
        self._count += 1

    def _means(self) -> dict[str, Array]:
        """The means of the weights; the weights where there are none yet."""
        if not self._count:
            values = self._session.variables()
            return {name: values[name] for name in self._trained}
        return {name: (total / self._count).astype(np.float32) for name, total in self._sums.items()}

    def _made(self, trained: Mapping[str, Array]) -> tuple[Graph, Head]:
        """The base with these constants, and the head."""
        base = dict(trained)
        table, biases = (base.pop(name) for name in HEAD)
        for holder, scale in self._scales.items():
            if holder in base:
                base[holder] = base[holder] * scale

        def changed(node: Node) -> Node:
            made = base.get(node.name)
            return node if made is None else node.replace(attrs={**node.attrs, "value": Tensor.from_numpy(made)})

        return self._tail.graph.map_nodes(changed), Head(table, biases, self._strength)


def _network(tail: Tail, cut: str, head: Head, shape: tuple[int, ...]) -> tuple[Graph, dict[str, Array]]:
    """The tail with a head behind it, for any number of examples; the scales that its layers' weights were divided by.

    Layers that a batch norm was folded into get weights of like size in each channel, so that one rate suits all.
    """
    graph, start = tail.graph, node_name(tail.start)
    behind = _behind(graph, tail.start, cut)
    needed = reachable(graph, [cut], stop=[start])
    sizes = infer(graph)
    nodes = {node.name: node for node in graph if node.name in needed and node.name != start}
    for node in behind:
        if node.op == "Reshape" and (rest := sizes.shape(node.name).dims) and None not in rest[1:]:
            sized = const(f"{SCOPE}/sizes/{node.name}", np.array([-1, *rest[1:]], np.int32))
            nodes[sized.name] = sized
            nodes[node.name] = node.replace(inputs=(node.inputs[0], sized.name), attrs={**node.attrs, "Tshape": INT32})
    fed = Node(start, "Placeholder", (), {"dtype": FLOAT, "shape": Shape((None, *shape))})
    network, gammas = with_unfolded_batch_norms(graph.replace([fed, *nodes.values()], outputs=(cut,), signatures={}))
    scales = {}
    for name in gammas:
        layer = network[name.removesuffix("/gamma")]
        gamma = network[name].tensor.numpy()
        holder = network.producer(layer.data_inputs[1])
        while holder.op != "Const":
            holder = network.producer(holder.data_inputs[0])
        wide = gamma.reshape(holder.tensor.shape[-2:]) if layer.op.startswith("Depthwise") else gamma
        scales[holder.name] = wide
    table, biases = HEAD
    made = [
        const(f"{FEATURES}/shape", np.array([-1, len(head.weights)], np.int32)),
        Node(FEATURES, "Reshape", (cut, f"{FEATURES}/shape"), {"T": FLOAT, "Tshape": INT32}),
        const(table, head.weights),
        const(biases, head.biases),
        Node(f"{SCOPE}/product", "MatMul", (FEATURES, table), {"T": FLOAT, "transpose_a": False, "transpose_b": False}),
        Node(LOGITS, "BiasAdd", (f"{SCOPE}/product", biases), {"T": FLOAT}),
    ]
    return network.replace([*network, *made], outputs=(LOGITS,)), scales


def _behind(graph: Graph, source: str, cut: str) -> list[Node]:
    """The nodes on the way from a tensor to another, in an order in which they can run."""
    needed = reachable(graph, [cut], stop=[node_name(source)])
    found: set[str] = {node_name(source)}
    result = []
    for node in topological(graph, partial=True):
        if node.name in needed and node.name not in found and any(node_name(ref) in found for ref in node.data_inputs):
            found.add(node.name)
            result.append(node)
    return result
