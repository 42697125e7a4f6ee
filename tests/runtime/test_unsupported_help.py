"""What is said of a node that stands in the way names a step that works."""

from __future__ import annotations

import numpy as np
import pytest

import pocketgraph
from pocketgraph.errors import RunError, UsageError
from pocketgraph.graph import Graph, const
from pocketgraph.graph.text_format import parse
from pocketgraph.runtime.unsupported_help import help_with

WEIGHTS = const("weights", np.eye(4, dtype=np.float32))


def test_a_python_function_is_the_apps_whose_result_is_fed() -> None:
    graph = Graph([
        *parse("""
            x = Placeholder(dtype=float, shape=[1,4])
            scale = PyFunc(x, Tin=[float], Tout=[float], token="pyfunc_0")
            y = MatMul(scale, weights, T=float)
        """),
        WEIGHTS,
    ])  # fmt: skip
    said = help_with(graph, "scale")
    assert "no file holds" in said
    assert said.endswith("inputs=scale")


@pytest.mark.parametrize("node", ["read", "update"])
def test_what_takes_a_constant_for_a_variable_is_repaired(node: str) -> None:
    graph = parse("""
        weights = Const(float [1.0, 2.0])
        read = ReadVariableOp(weights, dtype=float)
        update = Assign(weights, read, T=float)
    """)
    assert "repair=updates,references" in help_with(graph, node)


@pytest.mark.parametrize("scores", ["q", "noisy"])
def test_a_policy_that_explores_has_scores_without_chance(scores: str) -> None:
    graph = Graph([
        *parse(f"""
            x = Placeholder(dtype=float, shape=[1,4])
            q = MatMul(x, weights, T=float)
            sizes = Const(int32 [1, 4])
            noise = RandomUniform(sizes, T=int32, dtype=float)
            noisy = AddV2(q, noise, T=float)
            axis = Const(int32 1)
            best = ArgMax({scores}, axis, T=float)
            row = Const(int32 [1])
            other = RandomUniformInt(row, low, high, T=int32, Tout=int64)
            low = Const(int64 0)
            high = Const(int64 4)
            chance = RandomUniform(row, T=int32, dtype=float)
            share = Const(float 0.1)
            explores = Less(chance, share, T=float)
            action = Select(explores, other, best, T=int64)
        """),
        WEIGHTS,
    ])  # fmt: skip
    said = help_with(graph, "chance")
    assert ("outputs=q needs no random numbers" in said) == (scores == "q")
    assert "feed the random numbers" in said


def test_labels_beside_noise_are_no_scores() -> None:
    graph = parse("""
        x = Placeholder(dtype=float, shape=[1,4])
        labels = Placeholder(dtype=float, shape=[1,4])
        axis = Const(int32 1)
        truth = ArgMax(labels, axis, T=float)
        sizes = Const(int32 [1, 4])
        noise = RandomUniform(sizes, T=int32, dtype=float)
        y = AddV2(x, noise, T=float)
    """)
    said = help_with(graph, "noise")
    assert said.startswith("feed the random numbers")


def test_verify_says_what_fills_a_table_that_nothing_filled() -> None:
    graph = parse("""
        x = Placeholder(dtype=int64, shape=[1])
        table = HashTableV2(key_dtype=int64, value_dtype=float, shared_name="rows")
        none = Const(float 0)
        y = LookupTableFindV2(table, x, none, Tin=int64, Tout=float)
    """)
    with pytest.raises(RunError, match="run the graph's table initializer first"):
        pocketgraph.verify(graph, graph, outputs=["y"])


@pytest.mark.parametrize(("again", "fed"), [(True, "c"), (False, "magnitudes")])
def test_the_spectrum_to_feed_is_behind_what_makes_one_of_another(*, again: bool, fed: str) -> None:
    graph = Graph([
        *parse(f"""
            x = Placeholder(dtype=float, shape=[1,8])
            size = Const(int32 [8])
            s = RFFT(x, size, Treal=float, Tcomplex=complex64)
            magnitudes = ComplexAbs(s, T=complex64, Tout=float)
            cepstrum = RFFT(magnitudes, size, Treal=float, Tcomplex=complex64)
            c = Real(cepstrum, T=complex64, Tout=float)
            features = Slice({"c" if again else "magnitudes"}, begin, sizes, T=float, Index=int32)
            begin = Const(int32 [0, 0])
            sizes = Const(int32 [1, 4])
            y = MatMul(features, weights, T=float)
        """),
        WEIGHTS,
    ])  # fmt: skip
    graph = graph if again else graph.replace(nodes=[node for node in graph if node.name not in ("cepstrum", "c")])
    assert help_with(graph, "s") == f"the spectrum is the app's: inputs={fed} names what to feed"
    assert help_with(graph, "magnitudes") == help_with(graph, "s")
    fits = {"c": (1, 5), "magnitudes": (1, 5)}[fed]
    with pocketgraph.Session(graph, engine="litert") as session:  # nothing but LiteRT behind it
        assert session.run(["y"], {fed: np.ones(fits, np.float32)})[0].shape == (1, 4)


def test_decision_trees_stay_in_the_frozen_graph() -> None:
    graph = parse("""
        x = Placeholder(dtype=int32, shape=[1])
        trees = BoostedTreesEnsembleResourceHandleOp()
        y = BoostedTreesPredict(trees, x, num_bucketized_features=1, logits_dimension=1)
    """)
    for name in ("trees", "y"):
        assert "a frozen graph keeps them" in help_with(graph, name)
    with pytest.raises(UsageError, match="decision trees have no form there"):
        pocketgraph.export(graph, "never.tflite", outputs=["y"])
