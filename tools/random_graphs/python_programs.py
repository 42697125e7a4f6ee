"""Random programs in Python, for TensorFlow's autograph: loops with break, continue and early return, branches, calls.

A program is the text of a module with a function ``main(x, n)``: ``x`` is a float vector, ``n`` an int. What it returns
are a float, a vector, a matrix and an int. Loops end: each has a counter of its own beside its condition.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from random_graphs.choices import Choices

Array = np.ndarray[Any, Any]
WIDTH = 4  # of vectors and matrices
MOST_ROUNDS = 6  # of one loop
RESULT = "s0, v0, m0, c0"


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
            f"c{self.int(0, 1)} % {self.int(2, 3)} == {self.int(0, 1)}",
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
        arguments = "x, n, s0, s1, v0, m0, c0, c1"
        inner = Writer(self.rng, self.kind, self.returns, helpers=self.helpers)
        inner.line(1, f"if {inner.test(2)}:")
        inner.line(2, f"return {inner.test(2)}")
        if self.chance():
            inner.line(1, f"elif {inner.test(2)}:")
            inner.line(2, f"return tf.constant({self.chance()})")
        inner.line(1, "else:")
        inner.line(2, f"return {inner.test(2)}")
        wrap = self.pick(["", "@tf.function\n"]) if self.returns else ""
        self.helpers[place] = f"{wrap}def {name}({arguments}):\n" + "\n".join(inner.lines)
        return f"{name}({arguments})"

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
        ])  # fmt: skip

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


KINDS = ("breaks", "conditions", "nested", "attention", "long")


def written(rng: np.random.Generator, kind: str, forms: tuple[str, ...]) -> Source:
    """A random program of this kind."""
    form = forms[int(rng.integers(len(forms)))]
    p = Writer(rng, kind, returns=form not in ("v1", "frames"))
    size = p.int(2, 6)
    weights = np.round(rng.uniform(-0.8, 0.8, (WIDTH, WIDTH)), 3).tolist()
    p.line(0, "def main(x, n):")
    p.line(1, f"s0, s1 = tf.constant({p.number()}), x[0] * 0.5")
    p.line(1, f"c0, c1 = tf.constant({p.int(0, 3)}), n + {p.int(0, 2)}")
    p.line(1, f"v0 = tf.constant({np.round(rng.uniform(-1, 1, WIDTH), 2).tolist()}) + s1")
    p.line(1, "m0 = tf.stack([v0, v0 * 0.5])")
    p.line(1, f"w = tf.constant({weights})")
    if p.returns and p.chance(0.2):
        p.line(1, f"if {p.test()}:")
        p.line(2, "return " + RESULT)
    p.loop(1, 0, {"nested": 2, "conditions": 1, "breaks": 1, "attention": 1, "long": 1}[kind])
    if p.chance(0.4):
        p.block(1, 0, 1)
    p.line(1, "return " + RESULT)
    text = "\n\n\n".join(["import tensorflow as tf", *p.helpers, "\n".join(p.lines)]) + "\n"
    is_open = p.chance()
    feeds = []
    for _ in range(3):
        length = p.int(1, 7) if is_open else size
        feeds.append((np.round(rng.uniform(-2, 2, length), 2).astype(np.float32), p.int(1, length)))
    return Source(text, form, None if is_open else size, feeds)
