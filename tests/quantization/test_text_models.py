"""Graphs that read texts: TensorFlow's own, cut, quantized and exported, with its answers."""

from __future__ import annotations

import pathlib
from typing import Any

import numpy as np
import pytest

import pocketgraph
from graph_files import graph_file, graph_names
from loop_text import counted_loop
from pocketgraph.apps.shipping.text_steps import text_steps, vocabulary_files
from pocketgraph.datasets.evaluation_dataset import open_dataset
from pocketgraph.errors import UsageError
from pocketgraph.freezing.table_contents import lookups_without_filler, with_waiting_lookups
from pocketgraph.graph import Graph, Shape
from pocketgraph.graph.text_format import parse
from pocketgraph.quantization.evaluation.runnable_models import LiteRTModel
from pocketgraph.quantization.text_cut import text_preprocessing_at, text_preprocessing_of
from pocketgraph.quantization.text_inputs import text_inputs
from pocketgraph.quantization.text_preprocessing import TextPreprocessing
from pocketgraph.quantization.vocabulary import synthetic_texts, vocabularies
from pocketgraph.runtime import Session
from support import ROOT

FOLDER = ROOT / "tests" / "fixtures" / "text_models"
NAMES = graph_names(FOLDER)
WITH_TABLES = [name for name in NAMES if name != "hashed_record"]


@pytest.fixture(scope="module")
def answers() -> dict[str, Any]:
    with np.load(FOLDER / "answers.npz") as data:
        return dict(data)


def graph_of(name: str) -> Graph:
    return with_waiting_lookups(graph_file(FOLDER, name), "").replace(outputs=["scores"])


def table(folder: pathlib.Path, answers: dict[str, Any], name: str) -> str:
    """The texts as a table, each with the class that TensorFlow gives it."""
    rows = zip(answers["texts"], answers[name].argmax(1), strict=True)
    path = folder / "texts.csv"
    path.write_text("text,label\n" + "".join(f"{text.decode()},{label}\n" for text, label in rows))
    return str(path)


def front_of(graph: Graph, path: str) -> TextPreprocessing:
    found = text_preprocessing_of(graph, ["scores"], (), open_dataset(path, text_inputs(graph, ["scores"])).samples())
    assert found is not None
    return found


@pytest.mark.parametrize("name", WITH_TABLES)
def test_lookups_wait_for_a_step_that_fills_their_tables(name: str) -> None:
    graph = graph_file(FOLDER, name)
    assert lookups_without_filler(graph)
    assert not lookups_without_filler(graph_of(name))


@pytest.mark.parametrize("name", NAMES)
def test_all_answers_on_texts_are_tensorflows(name: str, answers: dict[str, Any], tmp_path: pathlib.Path) -> None:
    graph = graph_of(name)
    data = open_dataset(table(tmp_path, answers, name), text_inputs(graph, ["scores"]))
    with Session(graph) as session:
        given = {tuple(session.run(["scores"], {"text": sample[0]})[0][0]) for sample in data.samples()}
    wanted = np.array(sorted(map(tuple, answers[name])))
    np.testing.assert_allclose(np.array(sorted(given)), np.unique(wanted, axis=0), atol=1e-5)
    assert pocketgraph.evaluate(graph, table(tmp_path, answers, name))[0].accuracy.top1 == 1  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("name", "ends", "length"),
    [
        ("masked_mean", {"SparseToDense:0": (1, 11)}, 11),
        ("lstm", {"SparseToDense:0": (1, 11)}, 11),
        ("convolved", {"Pad:0": (1, 6)}, None),  # the graph brings texts to a length itself
        ("hashed_record", {"SparseToDense:0": (1, 11)}, 11),
        (
            "pooled",
            {
                "embedding_lookup/embedding_lookup_sparse/steps:0": (1, 11),
                "embedding_lookup/embedding_lookup_sparse/weights:0": (1, 11, 1),
            },
            11,
        ),
    ],
)
def test_the_part_behind_the_lookups_answers_as_the_whole(
    name: str, ends: dict[str, tuple[int, ...]], length: int | None, answers: dict[str, Any], tmp_path: pathlib.Path
) -> None:
    graph = graph_of(name)
    front = front_of(graph, table(tmp_path, answers, name))
    assert front.shapes == ends
    assert front.length == length
    part = front.behind()
    assert any("embedding" in node.name and node.op == "Const" for node in part)  # the table of weights ships
    given = []
    with Session(part) as session:
        for sample in open_dataset(table(tmp_path, answers, name), front.inputs).samples():
            fed = dict(zip(front.shapes, front(sample), strict=True))
            given.append(session.run(["scores"], fed)[0][0])
    order = [np.abs(answers[name] - row).max(1).argmin() for row in given]
    np.testing.assert_allclose(given, answers[name][order], atol=1e-5)
    assert sorted(set(order)) == sorted({np.abs(answers[name] - row).max(1).argmin() for row in answers[name]})


@pytest.mark.parametrize("name", NAMES)
def test_exported_files_answer_as_tensorflow(name: str, answers: dict[str, Any], tmp_path: pathlib.Path) -> None:
    graph, data = graph_of(name), table(tmp_path, answers, name)
    made = tmp_path / "m.tflite"
    pocketgraph.export(graph, made, samples=data)
    whole, file = pocketgraph.evaluate([graph, made], data)
    assert whole.accuracy.top1 == file.accuracy.top1 == 1  # type: ignore[union-attr]
    assert file.comparison is not None
    assert file.comparison.snr > 80
    assert pocketgraph.verify(graph, made, data=data).passed
    assert pocketgraph.verify(graph, made).passed  # on made-up texts


@pytest.mark.parametrize("name", ["masked_mean", "pooled", "hashed_record"])
@pytest.mark.parametrize("mode", ["static", "weights"])
def test_quantized_files_keep_the_answers(
    name: str, mode: Any, answers: dict[str, Any], tmp_path: pathlib.Path
) -> None:
    graph, data = graph_of(name), table(tmp_path, answers, name)
    heard: list[str] = []
    small = pocketgraph.quantize(graph, data, mode=mode, notify=heard.append)
    assert "stays with the app; texts are padded or cut to 11 steps" in heard[0]
    assert not any(note.startswith("warning: texts") for note in small.notes)
    small.save(tmp_path / "s.tflite")
    row = pocketgraph.evaluate([graph, tmp_path / "s.tflite"], data)[1]
    assert row.comparison is not None
    assert row.comparison.kl < 0.01
    assert row.comparison.agreement == 1


def test_answers_for_each_step_are_compared_for_the_steps_of_the_text(
    answers: dict[str, Any], tmp_path: pathlib.Path
) -> None:
    """The file answers for as many steps as texts are padded to, the graph for each that a text has."""
    graph, data = graph_of("masked_mean").replace(outputs=["mul"]), table(tmp_path, answers, "masked_mean")
    pocketgraph.quantize(graph, data, mode="weights").save(tmp_path / "s.tflite")
    row = pocketgraph.evaluate([graph, tmp_path / "s.tflite"], data)[1]
    assert row.comparison is not None
    assert row.comparison.snr > 25


AVERAGED = """
    text = Placeholder(dtype=string, shape=[?])
    blank = Const(string " ")
    split = StringSplit(text, blank)
    numbers = StringToHashBucketFast(split:1, num_buckets=7)
    nothing = Const(int64 0)
    ids = SparseToDense(split, split:2, numbers, nothing, T=int64, Tindices=int64)
    embedding = Const(float[7, 2] [[1, 0], [0, 2], [3, 0], [0, 4], [5, 0], [0, 6], [7, 0]])
    axis = Const(int32 0)
    rows = GatherV2(embedding, ids, axis, Tparams=float, Tindices=int64, Taxis=int32)
    steps = Const(int32 1)
    mean = Mean(rows, steps, T=float, Tidx=int32)
    weights = Const(float[2, 3] [[1, 0, 2], [0, 1, 1]])
    scores = MatMul(mean, weights, T=float)
"""


def test_padding_that_changes_answers_is_warned_of_and_open_lengths_do_not_pad(tmp_path: pathlib.Path) -> None:
    graph = parse(AVERAGED).replace(outputs=["scores"])
    texts = {"text": np.array(["a", "b c", "d e f g h i", "a b c d"] * 4, object)}
    small = pocketgraph.quantize(graph, texts)
    assert "warning: texts are padded or cut to 6 steps, which changes results" in small.notes[0]
    pocketgraph.export(graph, tmp_path / "open.tflite", samples=texts)
    declared = LiteRTModel(tmp_path / "open.tflite").declared
    assert declared[0].shape == (1, -1)
    row = pocketgraph.evaluate([graph, tmp_path / "open.tflite"], texts)[1]
    assert row.comparison is not None
    assert row.comparison.snr > 100


def test_a_text_without_words_is_pooled_as_tensorflow_does(answers: dict[str, Any], tmp_path: pathlib.Path) -> None:
    """safe_embedding_lookup_sparse gives zeros for it, so that all scores are alike here."""
    graph, data = graph_of("pooled"), table(tmp_path, answers, "pooled")
    pocketgraph.export(graph, tmp_path / "m.tflite", samples=data)
    empty = {"text": np.array(["", "fine film"], object)}
    rows = pocketgraph.evaluate([graph, tmp_path / "m.tflite"], empty)
    assert rows[1].comparison is not None
    assert rows[1].comparison.snr > 80
    with Session(graph) as session:
        np.testing.assert_allclose(session.run(["scores"], {"text": np.array([b""], object)})[0], [[1 / 3] * 3])


def test_what_texts_are_too_long_for_a_file_is_cut(answers: dict[str, Any], tmp_path: pathlib.Path) -> None:
    graph = graph_of("masked_mean")
    front = front_of(graph, table(tmp_path, answers, "masked_mean"))
    words = ["film", "good"] * 8
    long, short = (np.array([" ".join(words[:count]).encode()], object) for count in (16, 11))
    np.testing.assert_array_equal(front([long])[0], front([short])[0])
    assert front([np.array([b"film"], object)])[0].tolist() == [[2, *([-1] * 10)]]


def test_a_graph_of_one_text_at_a_time_pads_as_it_would_pad_those_of_a_batch() -> None:
    graph = graph_of("masked_mean")
    [name] = [node.name for node in graph if node.op == "Placeholder"]
    graph = graph.map_nodes(lambda node: node.with_attrs(shape=Shape((1,))) if node.name == name else node)
    texts = [[np.array([text], object)] for text in (b"film good film", b"film")]
    front = text_preprocessing_of(graph, ["scores"], (), texts)
    assert front is not None
    [found] = vocabularies(graph)
    good, film = map(found.words.index, ("good", "film"))
    assert [front(text)[0].tolist() for text in texts] == [[[film, good, film]], [[film, -1, -1]]]


def test_pooled_words_are_not_cut_where_their_rows_are_few_bytes(
    answers: dict[str, Any], tmp_path: pathlib.Path
) -> None:
    """700 words: a recurrent network would be unrolled 700 times, but to sum up 700 rows costs next to nothing."""
    graph = graph_of("pooled")
    words = [word for text in answers["texts"] for word in text.decode().split()]
    data = {"text": np.array([" ".join((words * 50)[:700]), "fine film"], object)}
    pocketgraph.export(graph, tmp_path / "m.tflite", samples=data)
    row = pocketgraph.evaluate([graph, tmp_path / "m.tflite"], data)[1]
    assert {item.shape[1] for item in LiteRTModel(tmp_path / "m.tflite").declared} == {700}
    assert row.comparison is not None
    assert row.comparison.snr > 80


def test_pooled_words_are_in_the_file_where_an_optimizer_joined_lookup_and_pooling(
    answers: dict[str, Any], tmp_path: pathlib.Path
) -> None:
    """TensorFlow's optimizer has SparseSegmentMean take the rows itself; TensorFlow.js' converter asks for that."""
    graph = graph_of("pooled")
    joined = {}
    for node in graph:
        if node.op.startswith("SparseSegment"):
            each, rows = graph.producer(node.data_inputs[1]), graph.producer(node.data_inputs[0])
            while rows.op == "Identity":
                rows = graph.producer(rows.data_inputs[0])
            joined[node.name] = node.replace(inputs=[rows.data_inputs[0], each.data_inputs[0], node.inputs[2]])
    assert joined
    graph = graph.map_nodes(lambda node: joined.get(node.name, node))
    data = table(tmp_path, answers, "pooled")
    front = front_of(graph, data)
    assert {cut.tensor.rpartition("/")[2] for cut in front.cuts} == {"steps:0", "weights:0"}
    pocketgraph.export(graph, tmp_path / "m.tflite", samples=data)
    rows_of = pocketgraph.evaluate([graph, tmp_path / "m.tflite"], data)
    assert rows_of[1].accuracy.top1 == 1  # type: ignore[union-attr]
    assert rows_of[1].comparison.snr > 80  # type: ignore[union-attr]


def test_a_graph_that_gives_only_texts_or_lookups_is_refused() -> None:
    graph = parse("""
        text = Placeholder(dtype=string, shape=[?])
        scores = StringToHashBucketFast(text, num_buckets=7)
    """).replace(outputs=["scores"])
    with pytest.raises(UsageError, match="no part of the model behind its texts runs on LiteRT"):
        pocketgraph.quantize(graph, {"text": np.array(["a", "b"], object)})


def test_a_loop_behind_texts_keeps_its_constants(tmp_path: pathlib.Path) -> None:
    """They wait for a value of their round; without that they were outside of the loop that reads them."""
    graph = parse("""
        text = Placeholder(dtype=string, shape=[?])
        ids = StringToHashBucketFast(text, num_buckets=7)
        table = Const(float[7, 2] 0.5)
        axis = Const(int32 0)
        found = GatherV2(table, ids, axis, Tparams=float, Tindices=int64, Taxis=int32)
        zero = Const(int32 0)
        three = Const(int32 3)
        enter_limit = Enter(three, T=int32, frame_name="w", is_constant=true)
        enter_i = Enter(zero, T=int32, frame_name="w")
        enter_x = Enter(found, T=float, frame_name="w")
        merge_i = Merge(enter_i, next_i, T=int32, N=2)
        merge_x = Merge(enter_x, next_x, T=float, N=2)
        less = Less(merge_i, enter_limit, T=int32)
        goes_on = LoopCond(less)
        switch_i = Switch(merge_i, goes_on, T=int32)
        switch_x = Switch(merge_x, goes_on, T=float)
        i = Identity(switch_i:1, T=int32)
        x = Identity(switch_x:1, T=float)
        one = Const(int32 1, ^x)
        add = Add(i, one, T=int32)
        rows = Const(int32[1] -1, ^x)
        columns = Const(int32[1] 2, ^x)
        at = Const(int32 0, ^x)
        sizes = ConcatV2(rows, columns, at, N=2, T=int32, Tidx=int32)
        flat = Reshape(x, sizes, T=float, Tshape=int32)
        tanh = Tanh(flat, T=float)
        next_i = NextIteration(add, T=int32)
        next_x = NextIteration(tanh, T=float)
        y = Exit(switch_x, T=float)
    """)
    (y,) = Session(graph).run(["y"], {"text": np.array(["a"], object)})
    np.testing.assert_allclose(y, np.tanh(np.tanh(np.tanh([[0.5, 0.5]]))), rtol=1e-6)
    exported = pocketgraph.export(graph, tmp_path / "loop.tflite", outputs=["y"])
    assert exported.checks[0].outputs[0].largest < 1e-6


def test_a_loop_in_front_of_the_lookups_stays_whole_with_the_app(tmp_path: pathlib.Path) -> None:
    """As ``map_fn`` over texts, with a round for each: the way back of its counter is in front, too."""
    texts_of_rounds = counted_loop("count", "next = StringLower(v)", start="text").replace("T=float", "T=string")
    graph = parse(f"""
        text = Placeholder(dtype=string, shape=[?])
        count = Size(text, T=string, out_type=int32)
        {texts_of_rounds}
        ids = StringToHashBucketFast(y, num_buckets=4)
        table = Const(float [[0.5, -1.0], [1.5, 2.0], [0.0, 3.0], [-2.0, 0.25]])
        axis = Const(int32 0)
        found = GatherV2(table, ids, axis, Tparams=float, Tindices=int64, Taxis=int32)
        weights = Const(float [[1.0, -0.5], [0.25, 2.0]])
        scores = MatMul(found, weights, T=float)
    """)
    texts = np.array(["Cat", "dog", "A b", "the end"])
    made = pocketgraph.export(graph, tmp_path / "behind.tflite", outputs=["scores"], samples={"text": texts})
    assert made.checks[0].outputs[0].largest < 1e-6
    assert made.checks[0].runs == 4


def test_steps_are_told_in_the_order_of_a_text_also_around_a_loop() -> None:
    """What is behind a loop comes last, though nothing but its condition stands between both; how a loop counts and
    hands its values on is no step. ``StringSplit`` without a delimiter splits bytes, ``StringSplitV2`` at white space.
    """
    in_rounds = counted_loop("count", "next = StringLower(v)", start="text").replace("T=float", "T=string")
    graph = parse(f"""
        text = Placeholder(dtype=string, shape=[?])
        count = Size(text, T=string, out_type=int32)
        {in_rounds}
        nothing = Const(string "")
        letters = StringSplit(y, nothing, skip_empty=false)
        size = Size(letters:1, T=string, out_type=int64)
        first = Const(int64[1] [0])
        one = Const(int32[1] [1])
        end = Reshape(size, one, T=int64, Tshape=int32)
        along = Const(int32 0)
        borders = ConcatV2(first, end, along, N=2, T=int64, Tidx=int32)
        pairs = StringNGrams(letters:1, borders, separator="-", ngram_widths=[2], left_pad="", right_pad="",
            pad_width=0, preserve_short_sequences=false, Tsplits=int64)
        ids = StringToHashBucketFast(pairs, num_buckets=4)
        table = Const(float [[0.5, -1.0], [1.5, 2.0], [0.0, 3.0], [-2.0, 0.25]])
        found = GatherV2(table, ids, along, Tparams=float, Tindices=int64, Taxis=int32)
        whole = Sum(found, along, T=float, Tidx=int32, keep_dims=true)
        weights = Const(float [[1.0, -0.5], [0.25, 2.0]])
        scores = MatMul(whole, weights, T=float)
    """)
    texts = [[np.array([text], object)] for text in (b"Cat", b"a dog")]
    front = text_preprocessing_of(graph, ["scores"], (), texts)
    assert front is not None
    steps = text_steps(front, {})
    assert steps[:3] == [
        "in a loop: make letters small", "split into single bytes", "join each 2 neighbours with '-' between",
    ]  # fmt: skip
    assert steps[3].startswith("number each word by its hash")
    assert not any("as TensorFlow does" in step for step in steps)


def test_a_file_of_another_model_is_refused(answers: dict[str, Any], tmp_path: pathlib.Path) -> None:
    data = table(tmp_path, answers, "convolved")
    pocketgraph.export(graph_of("convolved"), tmp_path / "m.tflite", samples=data)
    with pytest.raises(UsageError, match=r"takes Pad.*does not make of texts"):
        pocketgraph.evaluate([graph_of("masked_mean"), tmp_path / "m.tflite"], data)
    assert (
        text_preprocessing_at(graph_of("masked_mean"), ["scores"], LiteRTModel(tmp_path / "m.tflite").declared) is None
    )


def test_words_of_tables_are_known_and_synthetic_texts_are_of_them() -> None:
    graph = graph_of("masked_mean")
    (found,) = vocabularies(graph)
    assert found.words[:3] == ("bad", "dull", "film")
    assert found.first == 0
    assert {word for text in synthetic_texts(graph, 5) for word in text.split()} <= set(found.words)
    assert synthetic_texts(graph, 3) == synthetic_texts(graph, 3)


def test_numbers_of_a_table_are_written_as_words_are() -> None:
    """Keras' IntegerLookup beside a StringLookup."""
    graph = parse("""
        film = Placeholder(dtype=int64, shape=[?, 1])
        user = Placeholder(dtype=string, shape=[?, 1])
        films = HashTableV2(key_dtype=int64, value_dtype=int64)
        keys = Const(int64[3] [1007, 1002, -5])
        places = Const(int64[3] [1, 2, 3])
        fill = InitializeTableV2(films, keys, places, Tkey=int64, Tval=int64)
        users = HashTableV2(key_dtype=string, value_dtype=int64)
        names = Const(string[2] ["ann", "bob"])
        rows = Const(int64[2] [1, 2])
        fill_users = InitializeTableV2(users, names, rows, Tkey=string, Tval=int64)
        other = Const(int64 0)
        a = LookupTableFindV2(films, film, other, ^fill, Tin=int64, Tout=int64)
        b = LookupTableFindV2(users, user, other, ^fill_users, Tin=string, Tout=int64)
        table = Const(float[4, 2] 0.5)
        axis = Const(int32 0)
        va = GatherV2(table, a, axis, Tparams=float, Tindices=int64, Taxis=int32)
        vb = GatherV2(table, b, axis, Tparams=float, Tindices=int64, Taxis=int32)
        y = Add(va, vb, T=float)
    """)
    front = text_preprocessing_of(graph, ["y"])
    assert front is not None
    files = {vocabulary.table: (name, content) for name, vocabulary, content in vocabulary_files(front)}
    name, content = files["films"]
    assert content.decode().split() == ["1007", "1002", "-5"]
    steps = text_steps(front, {table: name for table, (name, _) in files.items()})
    assert (
        f"of 'film': look each number up in {name} (3 numbers; the first line is 1); numbers that are not there are 0"
        in steps
    )
    assert {word for text in synthetic_texts(graph, 3) for word in text.split()} == {"ann", "bob"}


def test_a_feature_that_a_record_need_not_have_is_made_dense_by_the_app() -> None:
    graph = parse("""
        records = Placeholder(dtype=string, shape=[?])
        names = Const(string[0] [])
        key = Const(string "weights")
        parsed = ParseExample(records, names, key, Nsparse=1, Ndense=0, sparse_types=[float], Tdense=[],
            dense_shapes=[])
        low = Const(float 0.0)
        fits = GreaterEqual(parsed:1, low, T=float)
        axis = Const(int32[1] [0])
        all = All(fits, axis, Tidx=int32)
        checked = Assert(all, fits, T=[bool])
        size = Const(int64[2] [1, 3])
        dense = SparseToDense(parsed, size, parsed:1, low, T=float, Tindices=int64)
        w = Const(float[3, 2] [[1, 2], [3, 4], [5, 6]])
        scores = MatMul(dense, w, ^checked, T=float)
    """)
    front = text_preprocessing_of(graph, ["scores"])
    assert front is not None
    assert [(cut.tensor, cut.shape) for cut in front.cuts] == [("dense:0", (1, 3))]


def test_a_one_hot_vector_as_long_as_a_table_is_made_in_front() -> None:
    """As an indicator column of a vocabulary is: the size of the table is no tensor of numbers on LiteRT."""
    graph = parse("""
        text = Placeholder(dtype=string, shape=[?])
        table = HashTableV2(key_dtype=string, value_dtype=int64, shared_name="words")
        words = Const(string[3] ["red", "green", "blue"])
        numbers = Const(int64[3] [0, 1, 2])
        fill = InitializeTableV2(table, words, numbers, Tkey=string, Tval=int64)
        none = Const(int64 -1)
        found = LookupTableFindV2(table, text, none, ^fill, Tin=string, Tout=int64)
        size = LookupTableSizeV2(table, ^fill)
        depth = Cast(size, SrcT=int64, DstT=int32)
        on = Const(float 1.0)
        off = Const(float 0.0)
        indicator = OneHot(found, depth, on, off, T=float, TI=int64)
        w = Const(float[3, 2] [[1, 2], [3, 4], [5, 6]])
        scores = MatMul(indicator, w, T=float)
    """).replace(outputs=["scores"])
    texts = [[np.array([word], object)] for word in (b"red", b"blue", b"red", b"gray")]
    for samples in (texts, ()):
        front = text_preprocessing_of(graph, ["scores"], (), samples)
        assert front is not None
        assert [(cut.tensor, cut.shape) for cut in front.cuts] == [("indicator:0", (1, 3))]
    assert front([np.array([b"green"], object)])[0].tolist() == [[0, 1, 0]]
    with Session(graph) as session:
        rows = session.run(["scores"], {"text": np.array([b"blue", b"gray"], object)})[0]
    assert rows.tolist() == [[5, 6], [0, 0]]


def test_words_that_a_table_lacks_are_numbered_by_hash_in_front() -> None:
    """As TensorFlow 1's index_table_from_tensor does with num_oov_buckets: the file takes one number a word."""
    graph = parse("""
        text = Placeholder(dtype=string, shape=[1])
        blank = Const(string " ")
        split = StringSplit(text, blank)
        none = Const(string "")
        dense = SparseToDense(split, split:2, split:1, none, T=string, Tindices=int64)
        table = HashTableV2(key_dtype=string, value_dtype=int64, shared_name="words")
        words = Const(string[2] ["good", "bad"])
        rows = Const(int64[2] [0, 1])
        fill = InitializeTableV2(table, words, rows, Tkey=string, Tval=int64)
        other = Const(int64 -1)
        found = LookupTableFindV2(table, dense, other, ^fill, Tin=string, Tout=int64)
        hash = StringToHashBucketFast(dense, num_buckets=3)
        count = LookupTableSizeV2(table, ^fill)
        behind = AddV2(hash, count, T=int64)
        is_found = NotEqual(found, other, T=int64)
        ids = SelectV2(is_found, found, behind, T=int64)
        rows_of = Const(float[5, 2] [[1, 0], [0, 1], [1, 1], [2, 1], [1, 2]])
        axis = Const(int32 0)
        vectors = GatherV2(rows_of, ids, axis, Tparams=float, Tindices=int64, Taxis=int32)
        middle = Const(int32 1)
        y = Sum(vectors, middle, T=float, Tidx=int32)
    """)
    front = text_preprocessing_of(graph, ["y"])
    assert front is not None
    assert [cut.tensor for cut in front.cuts] == ["ids:0"]
    [(name, vocabulary, _)] = vocabulary_files(front)
    assert (
        f"look each word up in {name} (2 words; the first line is 0); words that are not there are 2 + FarmHash's "
        "Fingerprint64 modulo 3" in text_steps(front, {vocabulary.table: name})
    )
