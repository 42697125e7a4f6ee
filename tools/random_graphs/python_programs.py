"""Random programs in Python, for TensorFlow's autograph: loops with break, continue and early return, branches, calls,
attention with circular shifts, ragged rows, extreme floats.

A program is the text of a module with a function ``main(x, n)``: ``x`` is a float vector, ``n`` an int. What it returns
are a float, a vector, a matrix and an int. Loops end: each has a counter of its own beside its condition.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from pocketgraph.graph.tensor import Array
from random_graphs.choices import Choices

WIDTH = 4  # of vectors and matrices, and rows of what is ragged
MOST_ROUNDS = 6  # of one loop
RESULT = "s0, v0, m0, c0"
STATE = "x, n, s0, s1, v0, m0, c0, c1"
EXTREMES = ("3.4e38", "-3.4e38", "1.2e-38", "65504.0", "1e19", "1e-19", "-0.0", "88.8", "-104.0", "16777217.0")
FED_EXTREMES = (*map(float, EXTREMES), float("inf"), float("-inf"), float("nan"), 2.0**31, -(2.0**31), 0.5, -1.0)


@dataclass(frozen=True)
class Source:
    """A program.

    Attributes:
        text: the module.
        form: how TensorFlow is to write it down (see python_worker.py).
        size: the elements of ``x`` that are declared; None: any number.
        feeds: what ``x`` and ``n`` are given, run by run.
    """

    text: str
    form: str
    size: int | None
    feeds: list[tuple[Array, int]]


@dataclass
class Writer(Choices):
    """A program in the making.

    Attributes:
        rng: where all choices come from.
        kind: what it is to show.
        lines: of the function that is written.
        helpers: the functions that it calls.
        returns: whether it may return early, which the control flow of TensorFlow 1 cannot.
    """

    rng: np.random.Generator
    kind: str
    returns: bool = True
    lines: list[str] = field(default_factory=list)
    helpers: list[str] = field(default_factory=list)
    counters: int = 0

    def line(self, depth: int, text: str) -> None:
        self.lines.append("    " * depth + text)

    # Expressions

    def number(self) -> str:
        if self.kind == "extremes" and self.chance(0.3):
            return self.pick([*EXTREMES, 'float("inf")', 'float("-inf")', 'float("nan")'])
        return f"{self.rng.uniform(-2, 2):.3f}"

    def scalar(self) -> str:
        return self.pick([
            "s0", "s1", "x[c0 % n]", "x[c1 % n]", "tf.reduce_sum(v0)", "tf.reduce_max(m0)", "tf.cast(c0, tf.float32)",
        ])  # fmt: skip

    def integer(self) -> str:
        return self.pick(["c0", "c1", "n", str(self.int(0, 4))])

    def test(self, depth: int = 0) -> str:
        """A condition."""
        plain = [
            f"{self.scalar()} < {self.scalar()} + {self.number()}",
            f"{self.scalar()} > {self.number()}",
            f"c{self.int(0, 1)} < {self.int(1, 9)}",
            f"tf.equal(c{self.int(0, 1)} % {self.int(2, 3)}, {self.int(0, 1)})",
            f"tf.reduce_any(v0 > {self.number()})",
            f"x[{self.integer()} % n] > {self.number()}",
        ]
        if depth < 2 and self.chance(0.5):
            a, b = self.test(depth + 1), self.test(depth + 1)
            return self.pick([
                f"({a}) and ({b})", f"({a}) or ({b})", f"not ({a})",
                f"tf.cond({a}, lambda: {b}, lambda: tf.constant({self.chance()}))",
                f"tf.cond({a}, lambda: tf.constant(True), lambda: tf.constant(False))",
                f"tf.switch_case(({self.integer()} + c0) % 3, [lambda: {a}, lambda: tf.constant(False), lambda: {b}])",
                self.call_of_test(),
            ])  # fmt: skip
        return self.pick(plain)

    def call_of_test(self) -> str:
        """A condition that a function of its own tells, with branches inside."""
        name = f"test{len(self.helpers)}"
        self.helpers.append("")
        place = len(self.helpers) - 1
        inner = Writer(self.rng, self.kind, self.returns, helpers=self.helpers)
        inner.line(1, f"if {inner.test(2)}:")
        inner.line(2, f"return {inner.test(2)}")
        if self.chance():
            inner.line(1, f"elif {inner.test(2)}:")
            inner.line(2, f"return tf.constant({self.chance()})")
        inner.line(1, "else:")
        inner.line(2, f"return {inner.test(2)}")
        wrap = self.pick(["", "@tf.function\n"]) if self.returns else ""
        self.helpers[place] = f"{wrap}def {name}({STATE}):\n" + "\n".join(inner.lines)
        return f"{name}({STATE})"

    def call_of_step(self) -> str:
        """A statement that calls a function with a loop of its own, with branches inside."""
        name = f"step{len(self.helpers)}"
        self.helpers.append("")
        place = len(self.helpers) - 1
        inner = Writer(self.rng, "breaks", self.returns, helpers=self.helpers, counters=100 * len(self.helpers))
        inner.line(1, f"w = tf.constant({weights(self.rng)})")
        inner.loop(1, 0, 1)
        inner.line(1, f"return {RESULT}")
        wrap = self.pick(["", "@tf.function\n"]) if self.returns else ""
        self.helpers[place] = f"{wrap}def {name}({STATE}):\n" + "\n".join(inner.lines)
        return f"{RESULT} = {name}({STATE})"

    # Statements

    def assignment(self) -> str:
        ways: list[Callable[[], str]] = [
            lambda: f"s0 = tf.tanh(s0 + {self.scalar()})",
            lambda: f"s0 = s0 + {self.scalar()} * 0.25",
            lambda: f"s1 = tf.minimum(s1 + {self.scalar()}, 5.0)",
            lambda: f"c0 = (c0 + {self.integer()} + 1) % 11",
            lambda: f"c1 = (c1 * 3 + {self.integer()}) % 7",
            lambda: f"v0 = tf.tanh(v0 + {self.scalar()})",
            lambda: f"v0 = v0 * 0.5 + m0[{self.int(0, 1)}]",
            lambda: "m0 = tf.tanh(tf.matmul(m0, w))",
            lambda: "m0 = tf.tanh(tf.matmul(m0, w) + v0)",
            lambda: f"m0 = tf.maximum(m0, {self.number()})",
            self.shifted,
        ]
        if self.kind == "attention":
            ways += [self.shifted, self.attended] * 3
        if self.kind == "ragged":
            ways += [self.of_rows] * 12
        if self.kind == "extremes":
            ways += [self.at_the_edge] * 8
        if self.kind == "calls" and len(self.helpers) < 3:
            ways += [self.call_of_step] * 4
        return self.pick(ways)()

    def shifted(self) -> str:
        """A circular shift."""
        place = self.int(1, WIDTH - 1)
        return self.pick([
            f"v0 = tf.concat([v0[{place}:], v0[:{place}]], 0)",
            f"v0 = tf.roll(v0, {self.integer()}, 0)",
            f"m0 = tf.reverse(m0, [{self.int(0, 1)}])",
            f"m0 = tf.concat([m0[:, -{place}:], m0[:, :-{place}]], 1)",
            "v0 = tf.stack([v0[3], v0[0], v0[1], v0[2]])",
        ])  # fmt: skip

    def attended(self) -> str:
        """Attention over the rows of a memory, by content, sharpened, or shifted by a kernel of three."""
        return self.pick([
            "v0 = tf.linalg.matvec(w, tf.nn.softmax(v0 * tf.nn.softplus(s0)))",
            "v0 = tf.nn.softmax(v0) ** (1.0 + tf.nn.softplus(s1))",
            "v0 = v0 / (tf.reduce_sum(tf.abs(v0)) + 0.5)",
            "v0 = tf.reduce_sum(tf.stack([tf.roll(v0, j, 0) for j in (-1, 0, 1)])"
            " * tf.nn.softmax(tf.stack([s0, s1, 0.5]))[:, None], 0)",
            "m0 = m0 * (1.0 - tf.nn.sigmoid(v0)) + tf.tensordot(tf.stack([s0, s1]), tf.tanh(v0), 0)",
            "v0 = tf.reduce_sum(tf.stack([tf.concat([tf.reverse(v0[:j + 1], [0]), tf.reverse(v0[j + 1:], [0])], 0)"
            " for j in range(4)]) * tf.nn.softmax(m0[0]), 1)",
            "v0 = tf.squeeze(tf.matmul(tf.nn.softmax(tf.matmul(v0[None], m0, transpose_b=True)), m0), 0)",
            "v0 = tf.gather(v0, (tf.range(4) + c0) % 4) * tf.nn.sigmoid(s0) + v0 * (1.0 - tf.nn.sigmoid(s0))",
            "v0 = (v0 ** 2 + 0.1) ** (1.0 + tf.nn.relu(s1)) / tf.reduce_sum((v0 ** 2 + 0.1) ** (1.0 + tf.nn.relu(s1)))",
            "m0 = tf.map_fn(lambda row: tf.roll(row, c0, 0) * tf.nn.softmax(v0), m0)",
        ])  # fmt: skip

    def of_rows(self) -> str:
        """Something of rows of different lengths, some of them empty, taken at indices that only the run knows."""
        rows = self.pick([
            "rows", "rows", "rows * 0.5", "tf.gather(x, tf.ragged.range(lengths) % n)",
            "tf.gather(rows, tf.stack([c0 % 4, 0, c1 % 4, 3]))",
            "tf.gather(rows, tf.cast(tf.argsort(v0), tf.int32))",
            "tf.ragged.boolean_mask(rows, rows > s0)",
            f"rows[:, {self.pick(['1:', ':2', '-1:', '::2'])}]",
            "tf.concat([rows, rows[:, :1]], 1)",
            "tf.concat([rows[2:], rows[:2]], 0)",
            "tf.ragged.map_flat_values(tf.tanh, rows)",
            "tf.RaggedTensor.from_tensor(tf.concat([m0, m0], 0), tf.stack([c0 % 5, c1 % 5, 0, 2]))",
            "tf.RaggedTensor.from_value_rowids(tf.tanh(x), tf.sort(tf.range(tf.size(x)) % 4), nrows=4)",
            "tf.RaggedTensor.from_tensor(rows.to_tensor(-9.0), padding=-9.0)",
        ])  # fmt: skip
        return self.pick([
            f"v0 = tf.tanh(v0 * 0.5 + tf.reshape(tf.reduce_sum({rows}, 1), [4]))",
            f"v0 = tf.maximum(v0, tf.reshape(tf.maximum(tf.reduce_max({rows}, 1), -1.0), [4]))",
            f"s0 = tf.tanh(s0 + tf.reduce_sum(({rows})[{self.pick(['c0 % 4', 'c1 % 4', '3'])}]))",
            f"v0 = tf.tanh(v0 + tf.reshape(tf.reduce_sum(({rows}).to_tensor(), 1), [4]))",
            f"c0 = (c0 + tf.reduce_max(tf.cast(({rows}).row_lengths(), tf.int32))) % 11",
            f"c1 = (c1 + tf.size(({rows}).flat_values)) % 7",
            "v0 = tf.tanh(v0 + tf.math.unsorted_segment_sum(rows.flat_values, rows.value_rowids(), 4))",
            "v0 = tf.reshape(tf.where(rows.row_lengths() > 1, v0, tf.tanh(v0 + s0)), [4])",
            f"v0 = v0 * 0.5 + tf.reshape(tf.sparse.reduce_sum(({rows}).to_sparse(), 1), [4])",
        ])  # fmt: skip

    def at_the_edge(self) -> str:
        """Something of numbers that are huge, tiny, not numbers or infinite."""
        value = self.pick(
            ["s0", "s1", "v0", "x[c0 % n]", "v0 * s1", f"v0 + {self.number()}", f"x[0] * {self.number()}"]
        )
        result = self.pick([
            "tf.minimum({0}, {1})", "tf.maximum({1}, {0})", "tf.exp(tf.minimum({0}, 80.0))", "tf.tanh({0})",
            "tf.nn.sigmoid({0})", "tf.sqrt(tf.abs({0}))", "tf.math.log(tf.abs({0}) + 1e-30)", "{0} * {1}", "{0} + {1}",
            "{1} - {0}", "{0} / {1}", "tf.sign({0})", "tf.nn.relu({0})", "tf.abs({0})", "tf.floor({0})", "-({0})",
            "tf.where(tf.math.is_nan({0}), tf.zeros_like({0}), {0})", "tf.nn.softplus({0})", "tf.nn.elu({0})",
            "tf.cast(tf.math.is_finite({0}), tf.float32)", "tf.nn.relu6({0})", "tf.math.rsqrt(tf.abs({0}) + 1e-9)",
            "tf.cast({0} < {1}, tf.float32)", "tf.clip_by_value({0}, -1e30, 1e30)", "tf.nn.leaky_relu({0})",
        ]).format(value, self.number())  # fmt: skip
        if "v0" in value:
            return self.pick([f"v0 = {result}", f"v0 = tf.nn.softmax({result})", f"s1 = tf.reduce_max({result})"])
        return f"{self.pick(['s0', 's1'])} = {result}"

    def block(self, depth: int, inside: int, budget: int, may_return: bool = False) -> None:
        """Some statements.

        Args:
            depth: how far they are indented.
            inside: how many loops they are in.
            budget: how much deeper they may go.
            may_return: whether they may return; not from within a ``for``.
        """
        for _ in range(self.int(1, 3)):
            self.line(depth, self.assignment())
            if budget and self.chance(0.7):
                self.pick([self.branch, self.loop, self.loop])(depth, inside, budget - 1)
        if inside and self.chance(0.4):
            self.line(depth, f"if {self.test()}:")
            if self.chance(0.3):
                self.line(depth + 1, self.assignment())
            words = ["break", "continue"] + ["return " + RESULT] * may_return
            self.line(depth + 1, self.pick(words))
            if self.chance():
                self.line(depth, self.assignment())

    def branch(self, depth: int, inside: int, budget: int) -> None:
        self.line(depth, f"if {self.test()}:")
        self.block(depth + 1, inside, budget)
        if self.chance(0.3):
            self.line(depth, f"elif {self.test()}:")
            self.block(depth + 1, inside, 0)
        if self.chance(0.6):
            self.line(depth, "else:")
            self.block(depth + 1, inside, 0)

    def loop(self, depth: int, inside: int, budget: int) -> None:
        self.counters += 1
        k, most = f"k{self.counters}", self.pick([str(self.int(0, MOST_ROUNDS)), "n"])
        if self.kind == "long":
            most = str(self.int(1, 200)) if not inside else "2"
        way = self.int(0, 4)
        is_while = way > 1 or (way == 1 and inside > 0)
        if way == 0:
            self.line(depth, f"for {k} in tf.range({most}):")
            self.line(depth + 1, self.pick([f"c1 = (c1 + {k}) % 7", f"s0 = s0 + tf.cast({k}, tf.float32) * 0.1"]))
        elif way == 1 and not inside:
            self.line(depth, f"for {k} in x:")
            self.line(depth + 1, f"s0 = tf.tanh(s0 + {k})")
        else:
            self.line(depth, f"{k} = tf.constant(0)")
            test = {2: f"{k} < {most}", 3: f"{k} < {most} and {self.test()}"}.get(way, "tf.constant(True)")
            if way == 3 and self.chance():
                test = f"tf.cond({k} < {most}, lambda: {self.test()}, lambda: tf.constant(False))"
            self.line(depth, f"while {test}:")
            if way in (1, 4):
                self.line(depth + 1, f"if {k} >= {most}:")
                self.line(depth + 2, "break")
            self.line(depth + 1, f"{k} = {k} + 1")
        self.block(depth + 1, inside + 1, budget, self.returns and not inside and is_while)


KINDS = ("breaks", "conditions", "nested", "attention", "long", "calls", "ragged", "extremes")


def weights(rng: np.random.Generator) -> list[list[float]]:
    rounded: list[list[float]] = np.round(rng.uniform(-0.8, 0.8, (WIDTH, WIDTH)), 3).tolist()
    return rounded


def written(rng: np.random.Generator, kind: str, forms: tuple[str, ...]) -> Source:
    """A random program of this kind."""
    form = forms[int(rng.integers(len(forms)))]
    p = Writer(rng, kind, returns=form not in ("v1", "frames"))
    size = p.int(2, 6)
    p.line(0, "def main(x, n):")
    p.line(1, f"s0, s1 = tf.constant({p.number()}), x[0] * 0.5")
    p.line(1, f"c0, c1 = tf.constant({p.int(0, 3)}), n + {p.int(0, 2)}")
    p.line(1, f"v0 = tf.constant({np.round(rng.uniform(-1, 1, WIDTH), 2).tolist()}) + s1")
    p.line(1, "m0 = tf.stack([v0, v0 * 0.5])")
    p.line(1, f"w = tf.constant({weights(rng)})")
    if kind == "ragged":
        p.line(1, f"lengths = tf.stack([n % 3, n, (n * {p.int(1, 3)} + {p.int(0, 3)}) % 4, {p.int(0, 2)}])")
        p.line(
            1, "rows = tf.RaggedTensor.from_row_lengths(tf.gather(x, tf.range(tf.reduce_sum(lengths)) % n), lengths)"
        )
    if p.returns and p.chance(0.2):
        p.line(1, f"if {p.test()}:")
        p.line(2, "return " + RESULT)
    p.loop(1, 0, 2 if kind == "nested" else 1)
    if p.chance(0.4):
        p.block(1, 0, 1)
    p.line(1, "return " + RESULT)
    text = "\n\n\n".join(["import tensorflow as tf", *p.helpers, "\n".join(p.lines)]) + "\n"
    is_open = p.chance()
    feeds = []
    for _ in range(3):
        length = p.int(1, 7) if is_open else size
        values = np.round(rng.uniform(-2, 2, length), 2).astype(np.float32)
        if kind == "extremes":
            for place in range(length):
                values[place] = p.pick(FED_EXTREMES) if p.chance(0.4) else values[place]
        feeds.append((values, p.int(1, length)))
    return Source(text, form, None if is_open else size, feeds)
