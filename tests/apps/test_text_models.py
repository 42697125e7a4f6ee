"""Models that read texts on the whole road: shipped with vocabulary and steps, labelled, timed."""

from __future__ import annotations

import json
import pathlib
import shlex

import numpy as np
import pytest

import pocketgraph
from command_line import call
from docs_site.reviews import CLASSES, WORDS, net, reviews, write_reviews
from pocketgraph.apps.label_text import TextLabeler
from pocketgraph.apps.shipping.ship import ship
from pocketgraph.apps.shipping.shipment import size_cause
from pocketgraph.errors import UsageError
from pocketgraph.graph.text_format import parse
from pocketgraph.quantization import text_cut


@pytest.fixture(autouse=True)
def folder(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> pathlib.Path:
    """A folder with the model and reviews, which commands write into."""
    monkeypatch.chdir(tmp_path)
    write_reviews(tmp_path)
    return tmp_path


@pytest.mark.parametrize("data", ["reviews.csv", "reviews/"])
def test_texts_ship_and_all_that_is_proposed_runs(
    data: str, folder: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call("ship", "reviews.pb", f"--data={data}", "--labels=opinions.txt", "-o", "out") == 0
    told = capsys.readouterr().out
    assert "100.0% of 64 answers are right, 100.0% before" in told
    assert "app    look each word up in vocabulary.txt (24 words; the first line is 1)" in told
    assert (folder / "out" / "vocabulary.txt").read_text().split() == WORDS
    assert "What the app does with a text" in (folder / "out" / "ship.html").read_text()
    for line in told.partition("next:\n")[2].splitlines():
        words = line.split()
        assert call(*words[1:], *(["--num_runs=1"] if words[1] == "benchmark_model" else [])) == 0
    capsys.readouterr()
    assert call("ship", "reviews.pb", f"--data={data}", "--labels=opinions.txt", "-o", "out") == 0
    again = capsys.readouterr()
    assert "has it already" in again.err
    assert "app    split at ' '" in again.out


def test_steps_that_an_app_takes_by_the_files_give_the_examples(folder: pathlib.Path) -> None:
    """Split, look up, pad: as text.json says it, written out here with nothing but the vocabulary."""
    found = ship("reviews.pb", "out", "reviews.csv", labels="opinions.txt")
    facts = json.loads((folder / "out" / "text.json").read_text())
    assert facts["steps"] == found.app[:-1]
    numbers = {word: at + 1 for at, word in enumerate((folder / "out" / "vocabulary.txt").read_text().splitlines())}
    length = facts["inputs"][0]["shape"][1]
    assert facts["inputs"][0]["name"] == "padded"
    assert len(facts["examples"]) == 5
    for example in facts["examples"]:
        ids = [numbers.get(word, 0) for word in example["text"].split(" ")]
        assert example["inputs"]["padded"] == [(ids + [-1] * length)[:length]]


def test_without_data_a_form_that_is_safe_is_taken(capsys: pytest.CaptureFixture[str]) -> None:
    assert call("ship", "reviews.pb", "-o", "out") == 0
    told = capsys.readouterr()
    assert "made-up inputs" in told.out
    assert "(int64 [1, 64])" in told.out
    for line in told.out.partition("next:\n")[2].splitlines():
        words = line.split()
        assert call(*words[1:], *(["--num_runs=1"] if words[1] == "benchmark_model" else [])) == 0


def test_texts_are_labelled_by_the_graph_and_by_the_file(
    folder: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ship("reviews.pb", "out", "reviews.csv")
    file = ("--graph=out/model.tflite", "--reader=out/frozen.pb")
    for model in (("--graph=reviews.pb",), file):
        assert call("label_text", *model, "--labels=opinions.txt", "-k1", "a lovely film", "quite dull") == 0
        lines = capsys.readouterr().out.splitlines()
        assert [line.split(" ")[0] for line in lines if "score" in line] == ["good", "bad"]
    (folder / "opinions.txt").rename(folder / "reviews_labels.txt")
    assert call("label_text", "--graph=reviews.pb", "-k1", "a lovely film") == 0
    assert capsys.readouterr().out.startswith("good ")
    assert call("label_text", "reviews.pb", "-k1", "reviews.csv") == 0
    assert "labelled as these letters, not what the file has" in capsys.readouterr().err
    assert call("label_text", *file, "--data=reviews.csv", "--json") == 0
    rows = json.loads(capsys.readouterr().out)
    texts = dict(reviews())
    assert all(CLASSES[row["predictions"][0]["index"]] == texts[row["text"]] for row in rows)


def test_label_text_says_what_it_lacks(folder: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> None:
    ship("reviews.pb", "out", "reviews.csv")
    capsys.readouterr()
    assert call("label_text", "--graph=out/model.tflite", "x") == 2
    assert "name the graph that it was made from as well" in capsys.readouterr().err
    assert call("label_text", "--graph=reviews.pb") == 2
    assert call("label_text", "x") == 2
    assert "no graph is given" in capsys.readouterr().err
    with pytest.raises(UsageError, match="takes no texts, but x"):
        TextLabeler("frozen.pb" if (folder / "frozen.pb").exists() else _plain())


def _plain() -> pocketgraph.Graph:
    from pocketgraph.graph.text_format import parse

    return parse("x = Placeholder(dtype=float, shape=[1, 2])\ny = Relu(x, T=float)")


def test_what_summarize_and_identify_propose_for_texts_runs(capsys: pytest.CaptureFixture[str]) -> None:
    assert call("identify", "reviews.pb") == 0
    assert call("summarize", "reviews.pb") == 0
    told = capsys.readouterr().out
    for line in told.partition("\nnext:\n")[2].splitlines():
        words = shlex.split(line)
        assert call(*words[1:], *(["--num_runs=1"] if words[1] == "benchmark_model" else [])) == 0


@pytest.mark.parametrize("fed", ["text=reviews.csv", "text=reviews/good/001.txt"])
def test_files_of_texts_are_fed_by_the_inputs_name(fed: str) -> None:
    assert call("verify", "reviews.pb", "reviews.pb", "--inputs", fed) == 0
    assert call("benchmark_model", "--graph=reviews.pb", "--inputs", fed, "--max_num_runs=2") == 0


def test_a_file_of_few_operations_has_no_cause_of_its_size(folder: pathlib.Path) -> None:
    pocketgraph.export(net().replace(outputs=["scores"]), folder / "m.tflite")
    assert size_cause(str(folder / "m.tflite")) == ""
    from pocketgraph.graph.text_format import parse

    steps = "\n".join(f"y{at + 1} = Tanh(z{at}, T=float)\nz{at + 1} = Mul(y{at + 1}, x, T=float)" for at in range(60))
    graph = parse("x = Placeholder(dtype=float, shape=[1, 4])\nz0 = Relu(x, T=float)\n" + steps)
    pocketgraph.export(graph, folder / "steps.tflite", outputs=["z60"])
    assert "describe its 121 operations" in size_cause(str(folder / "steps.tflite"))


def test_python_takes_texts_in_memory() -> None:
    texts = {"text": np.array(["a lovely film", "dull and cold"], object), "labels": np.array([1, 0])}
    found = pocketgraph.evaluate("reviews.pb", texts)
    assert found[0].accuracy is not None
    assert found[0].accuracy.top1 == 1


def test_a_file_behind_summed_embeddings_is_verified_by_the_models_output() -> None:
    """Behind the sums the lookup of embeddings leads nowhere, and is no output."""
    graph = parse(f"""
        text = Placeholder(dtype=string, shape=[?])
        blank = Const(string "")
        words = StringSplitV2(text, blank, maxsplit=-1)
        hash = StringToHashBucketFast(words:1, num_buckets=8)
        rows = Const(float {np.random.default_rng(0).normal(size=(8, 4)).tolist()})
        axis = Const(int32 0)
        vectors = GatherV2(rows, hash, axis, Tparams=float, Tindices=int64, Taxis=int32)
        begin = Const(int32 [0, 0])
        end = Const(int32 [0, 1])
        step = Const(int32 [1, 1])
        places = StridedSlice(words, begin, end, step, T=int64, Index=int32, begin_mask=1, end_mask=1,
            shrink_axis_mask=2)
        count = Size(text, T=string, out_type=int32)
        sums = UnsortedSegmentSum(vectors, places, count, T=float, Tindices=int64, Tnumsegments=int32)
        y = Tanh(sums, T=float)
    """)
    pocketgraph.export(graph, "sums.tflite")
    report = pocketgraph.verify(graph, "sums.tflite")
    assert report.passed, report
    assert [one.name for one in report.outputs] == ["y"]


def test_rows_of_words_ship_and_are_labelled_by_the_graphs_table(
    folder: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A TF 1 classifier of rows of words, of any number: made-up rows are longer than what fills them up."""
    graph = parse("""
        words = Placeholder(dtype=string, shape=[?, ?])
        table = HashTableV2(key_dtype=string, value_dtype=int64)
        keys = Const(string[4] ["cat", "dog", "bird", "fish"])
        numbers = Const(int64[4] [0, 1, 2, 3])
        fill = InitializeTableV2(table, keys, numbers, Tkey=string, Tval=int64)
        none = Const(int64 -1)
        found = LookupTableFindV2(table, words, none, ^fill, Tin=string, Tout=int64)
        one = Const(int64 1)
        rows = Add(found, one, T=int64)
        vectors = Const(float [[0, 0, 0], [4, 0, 0], [0, 3, 0], [0, 0, 5], [1, 1, 0]])
        axis = Const(int32 0)
        each = GatherV2(vectors, rows, axis, Tparams=float, Tindices=int64, Taxis=int32)
        along = Const(int32 1)
        mean = Mean(each, along, T=float, Tidx=int32)
        scores = Softmax(mean, T=float)
        best = ArgMax(scores, along, T=float, Tidx=int32, output_type=int64)
        names = HashTableV2(key_dtype=int64, value_dtype=string)
        called = Const(string[3] ["bad", "good", "so so"])
        places = Const(int64[3] [0, 1, 2])
        fill_names = InitializeTableV2(names, places, called, Tkey=int64, Tval=string)
        unknown = Const(string "?")
        class = LookupTableFindV2(names, best, unknown, ^fill_names, Tin=int64, Tout=string)
    """)
    pocketgraph.save(graph, "words.pb")
    made = pocketgraph.ship("words.pb", "words")
    assert any(path.endswith("model.tflite") for path in made.files)
    capsys.readouterr()
    assert call("label_text", "words.pb", "bird", "-k1", "--output_name=scores") == 0
    assert capsys.readouterr().out.splitlines()[-1].startswith("so so (score = 0.98")


def test_steps_say_which_input_they_are_for(folder: pathlib.Path) -> None:
    """A table's columns, each by its own preprocessing: a hash, boundaries, and counts."""
    graph = parse(f"""
        city = Placeholder(dtype=string, shape=[1])
        age = Placeholder(dtype=double, shape=[1])
        hash = StringToHashBucketFast(city, num_buckets=8)
        decade = Bucketize(age, T=double, boundaries=[20.5, 30.0, 40.0])
        rows = Const(float {np.eye(8, 4).tolist()})
        axis = Const(int32 0)
        place = GatherV2(rows, hash, axis, Tparams=float, Tindices=int64, Taxis=int32)
        ages = Const(float {np.eye(4, 4).tolist()})
        period = GatherV2(ages, decade, axis, Tparams=float, Tindices=int32, Taxis=int32)
        sum = AddV2(place, period, T=float)
        w = Const(float {np.random.default_rng(0).normal(size=(4, 3)).tolist()})
        y = MatMul(sum, w, T=float, transpose_a=false, transpose_b=false)
    """)
    pocketgraph.save(graph, "table.pb")
    np.savez("table.npz", city=np.array([[b"Bern"], [b"Rome"], [b"Oslo"]]), age=np.float64([[7], [33], [71]]))
    steps = ship("table.pb", "out", "table.npz").app
    assert "of 'age': number each by how many of these it has reached: 20.5, 30, 40" in steps
    assert any(step.startswith("of 'city': number each word by its hash: FarmHash") for step in steps)


def test_floats_that_do_not_keep_the_budget_are_no_verdict_to_ship(
    folder: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Texts are longer than what a file takes of them, and their ends decide."""
    monkeypatch.setattr(text_cut, "MOST_LENGTH", 2)
    monkeypatch.setattr(text_cut, "MOST_POOLED", 16)
    graph = parse("""
        text = Placeholder(dtype=string, shape=[?])
        blank = Const(string " ")
        split = StringSplit(text, blank)
        table = HashTableV2(key_dtype=string, value_dtype=int64, shared_name="words")
        words = Const(string[3] ["", "good", "bad"])
        places = Const(int64[3] [0, 1, 2])
        fill = InitializeTableV2(table, words, places, Tkey=string, Tval=int64)
        other = Const(int64 0)
        ids = LookupTableFindV2(table, split:1, other, ^fill, Tin=string, Tout=int64)
        vectors = Const(float [[0, 0], [1, 0], [0, 3]])
        axis = Const(int32 0)
        each = Unique(ids, T=int64, out_idx=int32)
        rows = GatherV2(vectors, each, axis, Tparams=float, Tindices=int64, Taxis=int32)
        text_of = ZerosLike(each:1, T=int32)
        sum = SparseSegmentSum(rows, each:1, text_of, T=float, Tidx=int32)
        scores = Softmax(sum, T=float)
    """)
    pocketgraph.save(graph, "ends.pb")
    (folder / "ends.txt").write_text("good good\nbad good\n" * 15 + "good good bad\nbad good good\n" * 10)
    found = ship("ends.pb", "out", "ends.txt")
    assert not any(each.is_kept for each in found.tried)
    assert found.is_proved
    assert found.verdict.startswith("Do not ship model.tflite (floats) yet: not even floats keep the budget of 5 %")
    assert "the same answer as before on 50.0% of 20 samples" in found.verdict


def test_an_onnx_file_behind_texts_is_judged_on_texts() -> None:
    graph = parse(f"""
        text = Placeholder(dtype=string, shape=[?])
        table = HashTableV2(key_dtype=string, value_dtype=int64, shared_name="words")
        words = Const(string ["ant", "bee", "cat"])
        numbers = Const(int64 [1, 2, 3])
        fill = LookupTableImportV2(table, words, numbers, Tin=string, Tout=int64)
        unknown = Const(int64 0)
        place = LookupTableFindV2(table, text, unknown, ^fill, Tin=string, Tout=int64)
        rows = Const(float {np.random.default_rng(0).normal(size=(4, 3)).tolist()})
        first = Const(int32 0)
        row = GatherV2(rows, place, first, Tparams=float, Tindices=int64, Taxis=int32)
        y = Softmax(row, T=float)
    """)
    pocketgraph.export(graph, "net.onnx")
    pocketgraph.save(graph, "net.pb")
    texts = np.array([["bee"], ["cat"], ["dog"], ["ant"]], object)
    for order in (["net.pb", "net.onnx"], ["net.onnx", "net.pb"]):
        found = pocketgraph.evaluate(order, texts)
        assert found[1].comparison is not None
        assert found[1].as_dict()["snr_db"] > 100
