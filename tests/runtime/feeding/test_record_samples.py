"""Made-up records: what parses Examples and rows of CSV takes them."""

import pathlib

import numpy as np
import pytest

from pocketgraph import benchmark
from pocketgraph.graph.dtype import STRING
from pocketgraph.graph.text_format import parse
from pocketgraph.inspect.benchmark_layers import BenchmarkLayer
from pocketgraph.runtime import Session
from pocketgraph.runtime.comparison.verification import verify
from pocketgraph.runtime.feeding.feed_files import read_input
from pocketgraph.runtime.feeding.record_samples import parser_of, record_sample
from pocketgraph.runtime.feeding.synthetic_feeds import synthetic_feeds

V1 = """
    given = Placeholder(dtype=string, shape=[?])
    names = Const(string [])
    sparse = Const(string "s")
    a = Const(string "a")
    b = Const(string "b")
    c = Const(string "c")
    f = Const(float [])
    i = Const(int64 [])
    s = Const(string [])
    parsed = ParseExample(given, names, sparse, a, b, c, f, i, s, Nsparse=1, Ndense=3, sparse_types=[string],
        Tdense=[float, int64, string], dense_shapes=[[3], [], [2]])
    floats = Identity(parsed:3, T=float)
    integers = Identity(parsed:4, T=int64)
    texts = Identity(parsed:5, T=string)
"""
V2 = """
    given = Placeholder(dtype=string, shape=[?])
    names = Const(string [])
    none = Const(string [])
    keys = Const(string ["a", "b", "c"])
    f = Const(float [])
    i = Const(int64 [])
    s = Const(string [])
    parsed = ParseExampleV2(given, names, none, keys, none, f, i, s, num_sparse=0, sparse_types=[],
        Tdense=[float, int64, string], dense_shapes=[[3], [], [2]], ragged_value_types=[], ragged_split_types=[])
    floats = Identity(parsed, T=float)
    integers = Identity(parsed:1, T=int64)
    texts = Identity(parsed:2, T=string)
"""
SINGLE = """
    given = Placeholder(dtype=string, shape=[])
    f = Const(float [])
    i = Const(int64 [])
    s = Const(string [])
    parsed = ParseSingleExample(given, f, i, s, num_sparse=0, sparse_keys=[], dense_keys=["a", "b", "c"],
        sparse_types=[], Tdense=[float, int64, string], dense_shapes=[[3], [], [2]])
    floats = Identity(parsed, T=float)
    integers = Identity(parsed:1, T=int64)
    texts = Identity(parsed:2, T=string)
"""


@pytest.mark.parametrize("text", [V1, V2, SINGLE])
def test_examples_have_what_the_parser_insists_on(text: str) -> None:
    graph = parse(text)
    wanted = ["floats", "integers", "texts"]
    feeds = synthetic_feeds(graph, wanted, seed=3)
    floats, integers, texts = Session(graph).run(wanted, feeds)
    assert floats.shape[-1] == 3
    assert np.unique(floats).size == 3
    assert np.all((integers >= 0) & (integers < 10))
    assert set(texts.ravel().tolist()) == {b""}
    assert feeds["given"].ravel().tolist() == synthetic_feeds(graph, wanted, seed=3)["given"].ravel().tolist()
    assert verify(graph, graph, outputs=wanted).passed


def test_rows_of_csv_have_the_fields_that_are_wanted() -> None:
    graph = parse("""
        given = Placeholder(dtype=string, shape=[?])
        f = Const(float [0.0])
        i = Const(int32 [])
        s = Const(string [""])
        row = DecodeCSV(given, f, i, s, OUT_TYPE=[float, int32, string])
        y = Identity(row:1, T=int32)
    """)
    feeds = synthetic_feeds(graph, ["row", "y"])
    floats, integers = Session(graph).run(["row", "y"], feeds)
    assert -1 <= floats.item() < 1
    assert 0 <= integers.item() < 10


def test_what_is_no_record_has_no_parser() -> None:
    graph = parse("""
        x = Placeholder(dtype=float)
        words = Placeholder(dtype=string, shape=[?])
        y = StringLower(words)
        z = Relu(x, T=float)
    """)
    assert parser_of(graph, "x") is None
    assert parser_of(graph, "words") is None


def test_a_parser_that_lies_about_its_keys_gets_what_can_be_made() -> None:
    graph = parse(V1.replace('b = Const(string "b")', "b = Placeholder(dtype=string, shape=[])"))
    record = record_sample(graph, graph["parsed"], np.random.default_rng(0))
    assert b"a" in record


def test_made_up_places_are_found_in_what_holds_one_row() -> None:
    graph = parse("""
        rows = Placeholder(dtype=float, shape=[?,2])
        places = Placeholder(dtype=int32, shape=[?])
        axis = Const(int32 0)
        y = GatherV2(rows, places, axis, Tparams=float, Tindices=int32, Taxis=int32)
    """)
    assert verify(graph, graph).passed


def test_zeros_at_the_end_of_a_made_up_text_are_fed() -> None:
    """NumPy drops them where it makes an array of bytes."""
    layer = BenchmarkLayer("x", STRING, (2,), text=b"a\x00")
    assert layer.array().tolist() == [b"a\x00", b"a\x00"]


@pytest.mark.parametrize(("shape", "fed"), [("[?]", (1,)), ("[]", ()), ("[?,1]", (1, 1)), ("[3]", ())])
def test_a_file_of_text_is_a_batch_of_one_where_batches_are_taken(
    shape: str, fed: tuple[int, ...], tmp_path: pathlib.Path
) -> None:
    graph = parse(f"text = Placeholder(dtype=string, shape={shape})\ny = StringLower(text)")
    (tmp_path / "a.txt").write_text("Some Words")
    found = read_input(graph, "text", str(tmp_path / "a.txt"))
    assert found.shape == fed
    assert found.ravel().tolist() == [b"Some Words"]


def test_what_comes_out_of_an_iterator_is_made_up(tmp_path: pathlib.Path) -> None:
    """Nobody can run the data set of a graph that training left in; its elements are the inputs."""
    graph = parse("""
        handle = IteratorV2(output_types=[float, int64], output_shapes=[[?,3], [?]], shared_name="", container="")
        next = IteratorGetNext(handle, output_types=[float, int64], output_shapes=[[?,3], [?]])
        axis = Const(int32 1)
        sum = Sum(next, axis, T=float, Tidx=int32)
        number = Cast(next:1, SrcT=int64, DstT=float)
        y = Add(sum, number, T=float)
    """)
    feeds = synthetic_feeds(graph, ["y"])
    assert {name: (value.shape, value.dtype) for name, value in feeds.items()} == {
        "next": ((1, 3), np.float32),
        "next:1": ((1,), np.int64),
    }
    assert synthetic_feeds(graph, ["sum"]).keys() == {"next"}
    assert verify(graph, graph).passed
    assert benchmark(graph, max_runs=1).plain.count == 1
