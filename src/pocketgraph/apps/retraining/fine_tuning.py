"""The last layers of a base trained on together with the new head, on distorted examples."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from pocketgraph.apps.retraining.bottlenecks import Bottlenecks, content_digest
from pocketgraph.apps.retraining.example_lists import Example
from pocketgraph.apps.retraining.photo_features import DISTORTED, MIRRORED, PLAIN, FeatureModel
from pocketgraph.apps.retraining.softmax_head import Head
from pocketgraph.apps.retraining.trained_tail import HEAD, LABELS, LOGITS, RATE, Tail, network_of
from pocketgraph.differentiation import add_loss, minimize, trainable
from pocketgraph.differentiation.trainable import weights
from pocketgraph.errors import RunError, UsageError, option
from pocketgraph.graph import Graph, Node, Shape, Tensor, node_name
from pocketgraph.graph.dtype import FLOAT
from pocketgraph.graph.tensor import Array
from pocketgraph.quantization.core.resume_state import ResumeState
from pocketgraph.runtime import Session, train

ONE_AT_A_TIME = "the base's layers take one example at a time, and training needs several"
WARM_UP, AVERAGED_FROM, AVERAGED_EVERY = 0.06, 0.4, 10
START_SHARE = 0.25  # of the weights that training begins with, in those that come out
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
    steps: int = 1500
    rate: float = 1e-3
    batch: int = 32
    variants: int = 24
    plain: tuple[int, ...] = (PLAIN, MIRRORED)


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
    on_step: Callable[[int, Mapping[str, float]], None] = lambda step, figures: None,
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
        on_step: called with a step and the figures there.

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
    with state.kept_when_stopped():
        made = training.run(
            rows, classes, validation=validation, shares=shares, seed=seed, state=state,
            progress=progress and partial(progress, "training"), on_step=on_step,
        )  # fmt: skip
    state.remove()
    return made


class FineTuning:
    """The training of a tail and a head.

    Adam on softmax cross entropy, the rate rising first and falling as a cosine to 0; what comes out is the mean of the
    weights over the later steps (Izmailov et al., "Averaging Weights Leads to Wider Optima and Better Generalization",
    2018), and a quarter of the way back to where they began (Wortsman et al., "Robust fine-tuning of zero-shot models",
    2022). Weights and offsets are trained; scales and statistics of batch norms stay as they are.

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
        network, self._scales = network_of(tail, cut, head, self._shape)
        self._first = {node.name: node.tensor.numpy() for node in weights(network) if not node.name.endswith("/gamma")}
        self._trained = list(self._first)
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
        on_step: Callable[[int, Mapping[str, float]], None] = lambda step, figures: None,
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
            on_step: called with a step and the figures there.

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
            on_step(done, figures)
            if progress is not None:
                progress(done, steps)
        return self._made(self._outcome())

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
        """Of examples, [n, size], with the weights that would come out now."""
        feeds = {f"{name}/read:0": value for name, value in self._outcome().items()}
        rows = [
            self._session.run([LOGITS], {self._tail.start: self._fed(examples[i : i + BATCH]), **feeds})[0]
            for i in range(0, len(examples), BATCH)
        ]
        return np.concatenate(rows)

    def _begun(self, state: ResumeState) -> tuple[int, float, int]:
        """Sets the variables; gives the steps that were made, the best accuracy, and evaluations since."""
        kept, graph = state.get("variables"), self._session.graph
        numbers = {name: kept.pop(name) for name in ("count", "done", "best", "since") if name in kept}
        self._sums = {name: kept.pop(f"{SUM}{name}") for name in self._trained if f"{SUM}{name}" in kept}
        self._session.run(["init"], {graph[f"{name}/Assign"].data_inputs[1]: kept[name] for name in kept})
        self._count = int(numbers.get("count", 0))
        return int(numbers.get("done", 0)), float(numbers.get("best", 0)), int(numbers.get("since", 0))

    def _keep(self, state: ResumeState, done: int, best: float, since: int) -> None:
        """Keeps all in one go, so that it belongs together whenever it is written."""
        numbers = {"count": self._count, "done": done, "best": best, "since": since}
        sums = {f"{SUM}{name}": total for name, total in self._sums.items()}
        arrays = {name: np.array(value) for name, value in numbers.items()}
        state.put("variables", {**self._session.variables(), **sums, **arrays})

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

    def _outcome(self) -> dict[str, Array]:
        """The means of the weights, or the weights where there are none yet, and a share of the first ones."""
        values = self._session.variables() if not self._count else {}
        return {
            name: np.asarray(
                START_SHARE * first
                + (1 - START_SHARE) * (self._sums[name] / self._count if self._count else values[name]),
                np.float32,
            )
            for name, first in self._first.items()
        }

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
