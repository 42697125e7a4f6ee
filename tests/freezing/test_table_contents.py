"""Lookup tables of frozen graphs: filled by the graph itself, and left alone where their contents are not known."""

import pathlib

import numpy as np
import pytest

from function_text import with_functions
from pocketgraph.errors import FreezeError, RunError
from pocketgraph.formats import save
from pocketgraph.freezing import freeze_with_report
from pocketgraph.freezing.table_contents import (
    lookups_without_filler,
    with_table_contents,
    with_waiting_lookups,
)
from pocketgraph.freezing.tables import fillers_of
from pocketgraph.graph import Tensor
from pocketgraph.graph.dtype import INT64, STRING
from pocketgraph.graph.text_format import parse
from pocketgraph.kernels.state.table_files import table_columns
from pocketgraph.runtime import Session

WORDS = """
    x = Placeholder(dtype=string, shape=[?])
    table = HashTableV2(key_dtype=string, value_dtype=int64, shared_name="words")
    keys = Const(string ["a", "b"])
    zero = Const(int32 0)
    two = Const(int32 2)
    one = Const(int32 1)
    count = Range(zero, two, one, Tidx=int32)
    values = Cast(count, SrcT=int32, DstT=int64)
    fill = InitializeTableV2(table, keys, values, Tkey=string, Tval=int64)
    none = Const(int64 -1)
    found = LookupTableFindV2(table, x, none, Tin=string, Tout=int64)
    w = VariableV2(dtype=int64, shape=[])
    y = Mul(found, w, T=int64)
"""
VALUES = {"w": parse("w = Const(int64 10)")["w"].tensor}


def test_what_fills_a_table_comes_along_and_is_waited_for() -> None:
    told = freeze_with_report(parse(WORDS), "y", VALUES)
    assert told.warnings == ()
    assert told.graph["found"].inputs == ("table", "x", "none", "^fill")
    with Session(told.graph) as session:
        for _ in range(2):
            [y] = session.run(["y"], {"x": np.array([b"b", b"a", b"c"], object)})
            assert y.tolist() == [10, 0, -10]


def test_a_filler_that_is_among_the_outputs_is_left_alone() -> None:
    graph = freeze_with_report(parse(WORDS), ["y", "fill"], VALUES).graph
    assert graph["found"].inputs == ("table", "x", "none")


MADE = """
    made() -> handle: resource = table:table_handle:0
    table = HashTableV2(key_dtype=string, value_dtype=int64, shared_name="words")
"""


@pytest.mark.parametrize("is_known", [True, False])
def test_a_table_that_a_call_makes_is_filled(is_known: bool) -> None:
    """As in a SavedModel that holds another one, whose tables functions make when it is loaded."""
    text = WORDS.replace(
        'table = HashTableV2(key_dtype=string, value_dtype=int64, shared_name="words")',
        "table = StatefulPartitionedCall(Tin=[], Tout=[resource], f=func(made))",
    )
    if not is_known:
        text = text.replace('keys = Const(string ["a", "b"])', "keys = Placeholder(dtype=string, shape=[2])")
    graph = with_functions(parse(text), MADE.strip().splitlines())
    told = freeze_with_report(graph, "y", VALUES, control_flow="lower")
    if not is_known:
        assert "the lookup table 'table/table' stays empty: 'fill' fills it" in told.warnings[0]
        return
    assert told.warnings == ()
    with Session(told.graph) as session:
        [y] = session.run(["y"], {"x": np.array([b"b", b"a", b"c"], object)})
    assert y.tolist() == [10, 0, -10]


def test_only_a_call_is_looked_at_for_a_table_that_is_not_in_the_graph() -> None:
    words = parse(WORDS)
    assert [filler.run for filler in fillers_of(words, "table")] == ["fill"]
    assert not list(fillers_of(words, "table/other"))


@pytest.mark.parametrize(
    "keys",
    [
        "keys = Placeholder(dtype=string, shape=[2])",
        "other = HashTableV2(key_dtype=int64, value_dtype=string)\nkeys = LookupTableFindV2(other, values, none)",
    ],
)
def test_contents_that_only_a_run_tells_are_told_of(keys: str) -> None:
    text = WORDS.replace('keys = Const(string ["a", "b"])', keys)
    told = freeze_with_report(parse(text), "y", VALUES)
    assert told.graph["found"].inputs == ("table", "x", "none")
    assert "the lookup table 'table' stays empty: 'fill' fills it" in told.warnings[0]


def test_a_graph_without_tables_stays_as_it_is() -> None:
    graph = parse("x = Placeholder(dtype=float)\ny = Relu(x, T=float)")
    assert with_table_contents(graph, graph, "") is graph


def test_columns_of_a_file(tmp_path: pathlib.Path) -> None:
    text = b"a 1\r\nb 22\n"
    keys, values = table_columns(text, (STRING, INT64), (0, 1), delimiter=b" ")
    assert (keys.tolist(), values.tolist()) == ([b"a", b"b"], [1, 22])
    keys, values = table_columns(text, (STRING, INT64), (-2, -1), size=1)
    assert (keys.tolist(), values.tolist()) == ([b"a 1"], [0])
    with pytest.raises(RunError, match="has 2 lines where 3 are wanted"):
        table_columns(text, (STRING, INT64), (-2, -1), size=3)
    with pytest.raises(RunError, match="line 1 has no column 7"):
        table_columns(text, (STRING, INT64), (0, 7), delimiter=b" ")


FROM_FILE = """
    x = Placeholder(dtype=string, shape=[?])
    table = HashTableV2(key_dtype=string, value_dtype=int64, shared_name="words")
    name = Const(string "/train/words.txt")
    init_all_tables = InitializeTableFromTextFileV2(table, name, key_index=-2, value_index=-1, vocab_size=-1)
    none = Const(int64 -1)
    found = LookupTableFindV2(table, x, none, Tin=string, Tout=int64)
"""


def test_words_beside_a_model_are_taken_in_and_waited_for(tmp_path: pathlib.Path) -> None:
    graph = parse(FROM_FILE)
    assert [node.name for node in lookups_without_filler(graph)] == ["table"]
    assert with_waiting_lookups(graph, str(tmp_path))["found"].inputs == ("table", "x", "none")
    (tmp_path / "words.txt").write_text("a\nb\n")
    whole = with_waiting_lookups(graph, str(tmp_path))
    assert not lookups_without_filler(whole)
    with Session(whole) as session:
        assert session.run(["found"], {"x": np.array([b"b", b"c"], object)})[0].tolist() == [1, -1]


def test_only_files_of_words_are_looked_for_beside_a_model(tmp_path: pathlib.Path) -> None:
    (tmp_path / "secret.key").write_text("a\nb\n")
    graph = parse(FROM_FILE.replace("/train/words.txt", "secret.key"))
    assert lookups_without_filler(with_waiting_lookups(graph, str(tmp_path)))


def test_a_frozen_graph_whose_tables_are_filled_apart_freezes_once_more(tmp_path: pathlib.Path) -> None:
    (tmp_path / "words.txt").write_text("a\nb\n")
    save(parse(FROM_FILE), tmp_path / "frozen.pb")
    told = freeze_with_report(tmp_path / "frozen.pb", "found")
    assert told.warnings == ()
    with Session(told.graph) as session:
        assert session.run(["found"], {"x": np.array([b"a"], object)})[0].tolist() == [0]


TRAINED = """
    x = Placeholder(dtype=string, shape=[?])
    counts = MutableHashTableV2(key_dtype=string, value_dtype=int64, shared_name="table_1")
    none = Const(int64 -1)
    count = LookupTableFindV2(counts, x, none, Tin=string, Tout=int64)
    empty = Const(int64 -100)
    deleted = Const(int64 -200)
    weights = MutableDenseHashTableV2(empty, deleted, key_dtype=int64, value_dtype=float, value_shape=[2])
    zeros = Const(float [0.5, 0.5])
    weight = LookupTableFindV2(weights, count, zeros, Tin=int64, Tout=float)
"""
SAVER = """
    file = Const(string "model")
    names = Const(string ["a-keys", "a-values", "b-keys", "b-values"])
    slices = Const(string ["", "", "", ""])
    read = RestoreV2(file, names, slices, dtypes=[string, int64, int64, float])
    first = LookupTableImportV2(counts, read:0, read:1, Tin=string, Tout=int64)
    second = LookupTableImportV2(weights, read:2, read:3, Tin=int64, Tout=float)
"""
STORED = [
    Tensor.from_numpy(np.array([b"b", b"a"], object), STRING),
    Tensor.from_numpy(np.array([5, 4])),
    Tensor.from_numpy(np.array([[-100], [4], [-200], [-100]])),
    Tensor.from_numpy(np.float32([[0, 0], [1, 2], [9, 9], [0, 0]])),
]
"""What TensorFlow 1.15 exports: of a dense table, all buckets."""


@pytest.mark.parametrize("saver", ["", SAVER])
def test_what_training_put_into_tables_comes_out_of_its_checkpoint(saver: str) -> None:
    names = ("a", "b") if saver else ("counts", "weights")
    keys = [f"{name}-{end}" for name in names for end in ("keys", "values")]
    told = freeze_with_report(parse(TRAINED + saver), ["count", "weight"], dict(zip(keys, STORED, strict=True)))
    assert told.warnings == ()
    with Session(told.graph) as session:
        for _ in range(2):
            count, weight = session.run(["count", "weight"], {"x": np.array([b"a", b"", b"b"], object)})
            assert count.tolist() == [4, -1, 5]
            assert weight.tolist() == [[1, 2], [0.5, 0.5], [0.5, 0.5]]


def test_tables_whose_contents_no_checkpoint_has_are_told_of() -> None:
    text = TRAINED + "w = VariableV2(dtype=int64, shape=[])\ny = Mul(count, w, T=int64)"
    told = freeze_with_report(parse(text), "y", VALUES)
    assert "the lookup table 'counts' stays empty" in told.warnings[0]


def test_contents_of_another_table_are_refused() -> None:
    keys = [f"counts-{end}" for end in ("keys", "values")]
    with pytest.raises(FreezeError, match="are no keys and values of a table of string and int64"):
        freeze_with_report(parse(TRAINED), "count", dict(zip(keys, STORED[2:], strict=True)))


def test_a_saver_of_tensorflow_fills_a_dense_table_with_its_buckets() -> None:
    text = """
        found_keys = Placeholder(dtype=int64, shape=[4, 1])
        found_values = Placeholder(dtype=float, shape=[4, 2])
        fill = LookupTableImportV2(weights, found_keys, found_values, Tin=int64, Tout=float)
    """
    with Session(parse(TRAINED + text)) as session:
        session.run(["fill"], {"found_keys": STORED[2].numpy(), "found_values": STORED[3].numpy()})
        assert session.run(["weight"], {"count": np.array([4, 5])})[0].tolist() == [[1, 2], [0.5, 0.5]]
