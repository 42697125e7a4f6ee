"""Lookups in a table that was cut into partitions are lookups in the joined table."""

from pathlib import Path

import numpy as np
import pytest

import pocketgraph as pg
from pocketgraph.graph import Graph
from pocketgraph.graph.text_format import parse
from pocketgraph.passes.partitioned_lookups import with_joined_tables

TABLE = np.arange(22, dtype=np.float32).reshape(11, 2)

LOOKUP = """
    ids = Placeholder(dtype=int64, shape=[?])
    size = Size(ids, T=int64, out_type=int32)
    zero = Const(int32 0)
    step = Const(int32 1)
    count = Range(zero, size, step)
    three = Const(int64 3)
    four = Const(int64 4)
    two = Const(int64 2)
    place = Cast(partition, SrcT=int64, DstT=int32)
    rows = DynamicPartition(row, place, num_partitions=3, T=int64)
    order = DynamicPartition(count, place, num_partitions=3, T=int32)
    p0 = Const(float[4,2] {0})
    p1 = Const(float[4,2] {1})
    p2 = Const(float[3,2] {2})
    p0/read = Identity(p0, T=float)
    g0 = GatherV2(p0/read, rows, zero, Tparams=float, Tindices=int64, Taxis=int32)
    g1 = GatherV2(p1, rows:1, zero, Tparams=float, Tindices=int64, Taxis=int32)
    g2 = GatherV2(p2, rows:2, zero, Tparams=float, Tindices=int64, Taxis=int32)
    found = ParallelDynamicStitch(order, order:1, order:2, g0, g1, g2, N=3, T=float)
    y = Relu(found, T=float)
"""
MOD = """
    partition = FloorMod(ids, three, T=int64)
    row = FloorDiv(ids, three, T=int64)
"""
DIV = """
    early = FloorDiv(ids, four, T=int64)
    less = Sub(ids, two, T=int64)
    late = FloorDiv(less, three, T=int64)
    partition = Maximum(early, late, T=int64)
    is_early = Less(partition, two, T=int64)
    early_row = FloorMod(ids, four, T=int64)
    late_row = FloorMod(less, three, T=int64)
    row = Select(is_early, early_row, late_row, T=int64)
"""
"""As tf.nn.embedding_lookup of TensorFlow 1.15 computes them for a table of 11 rows in 3 partitions."""


def lookup(strategy: str) -> Graph:
    """A lookup whose partitions hold the rows of TABLE."""
    parts = [TABLE[n::3] for n in range(3)] if strategy == MOD else np.split(TABLE, [4, 8])
    return parse(strategy + LOOKUP.format(*(part.tolist() for part in parts)))


@pytest.mark.parametrize("strategy", [MOD, DIV], ids=["mod", "div"])
def test_the_joined_table_is_the_one_that_was_cut(strategy: str) -> None:
    joined = with_joined_tables(lookup(strategy))
    assert {node.op for node in joined} == {"Placeholder", "Const", "GatherV2", "Relu"}
    table = joined.constant(joined["found"].data_inputs[0])
    assert table is not None
    np.testing.assert_array_equal(table.numpy(), TABLE)
    for ids in ([10, 0, 4, 3, 7, 8, 0], []):
        (found,) = pg.Session(joined).run(["y"], {"ids": np.array(ids, np.int64)})
        np.testing.assert_array_equal(found, TABLE[np.array(ids, np.int64)])


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("rows:1, zero", "rows:2, zero"),  # another partition's rows
        ("order:1, order:2", "order:2, order:1"),  # in another order
        ("DynamicPartition(count,", "DynamicPartition(other,"),  # not where they were
        ("p2 = Const(float[3,2]", "p2 = VariableV2(dtype=float, shape=[3,2])\n    q = Const(float[3,2]"),
        ("row = FloorDiv(ids, three, T=int64)", "row = FloorDiv(ids, four, T=int64)"),  # rows that two ids share
        ("partition = FloorMod(ids, three, T=int64)", "partition = Unique(ids, T=int64, out_idx=int64)"),
    ],
)
def test_any_other_stitch_stays(before: str, after: str) -> None:
    text = MOD + LOOKUP.format(*(TABLE[n::3].tolist() for n in range(3)))
    assert before in text
    graph = parse(text.replace(before, after) + "\n    other = Placeholder(dtype=int32, shape=[?])")
    assert with_joined_tables(graph) is graph


@pytest.mark.parametrize("strategy", [MOD, DIV], ids=["mod", "div"])
def test_it_exports_and_quantizes(strategy: str, tmp_path: Path) -> None:
    ids = np.array([10, 0, 4, 3], np.int64)
    path = tmp_path / "lookup.tflite"
    pg.export(lookup(strategy), path, shapes={"ids": [4]})
    (found,) = pg.Session(path).run(["y"], {"ids": ids})
    np.testing.assert_array_equal(found, TABLE[ids])
    small = tmp_path / "small.tflite"
    pg.quantize(lookup(strategy), mode="dynamic", shapes={"ids": [1]}).save(small)
    (rounded,) = pg.Session(small).run(["y"], {"ids": ids[:1]})
    np.testing.assert_allclose(rounded, TABLE[ids[:1]], atol=0.1)
