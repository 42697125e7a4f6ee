"""Texts in tables, folders and lists: which column is what, and what is wrong with others."""

from __future__ import annotations

import pathlib
import wave

import numpy as np
import pytest

from pocketgraph.apps.label_text import texts_of
from pocketgraph.datasets.evaluation_dataset import open_dataset
from pocketgraph.datasets.model_input import ModelInput
from pocketgraph.datasets.text_samples import read_texts
from pocketgraph.datasets.text_tables import read_text_table
from pocketgraph.errors import FormatError, UsageError
from pocketgraph.formats.example_writer import RecordFeature
from pocketgraph.graph.dtype import FLOAT, INT64, STRING

TEXT = (ModelInput("text:0", (1,), np.dtype(object)),)


def read(
    folder: pathlib.Path, content: str, name: str = "t.csv", names: tuple[str, ...] = ()
) -> tuple[list[str], list[str]]:
    path = folder / name
    path.write_text(content, encoding="utf-8")
    found = read_text_table(str(path), names)
    return list(found.columns[found.text]), list(found.classes)


@pytest.mark.parametrize(
    ("content", "texts", "classes"),
    [
        ("text,label\na b,pos\nc,neg\n", ["a b", "c"], ["pos", "neg"]),
        ("label,text\npos,a b\nneg,c\n", ["a b", "c"], ["pos", "neg"]),
        ('id,Review,sentiment\n1,"a, b",1\n2,c,0\n', ["a, b", "c"], ["1", "0"]),
        ("a b,pos\nc d,neg\ne f,pos\ng h,neg\n", ["a b", "c d", "e f", "g h"], ["pos", "neg", "pos", "neg"]),
        ("v1,v2\n" + "ham,so long\nspam,buy this now\n" * 3, ["so long", "buy this now"] * 3, ["ham", "spam"] * 3),
        ("text\na b\nc\n", ["a b", "c"], []),
        ("text,label\na,1.0\nb,2.0\n", ["a", "b"], ["1", "2"]),
        ("text,label\na,x\nb,x\nc,y\nd,y\n", ["a", "c", "b", "d"], ["x", "y", "x", "y"]),  # classes in turn
    ],
)
def test_columns_are_found_by_name_and_content(
    content: str, texts: list[str], classes: list[str], tmp_path: pathlib.Path
) -> None:
    assert read(tmp_path, content) == (texts, classes)


def test_the_column_that_is_named_like_the_input_is_taken(tmp_path: pathlib.Path) -> None:
    content = "title,text,label\nshort,a long one,1\nbrief,another long one,0\n"
    assert read(tmp_path, content, names=("title",))[0] == ["short", "brief"]


def test_tabs_part_the_columns_of_a_tsv(tmp_path: pathlib.Path) -> None:
    assert read(tmp_path, "text\tlabel\na, b\tpos\nc\tneg\n", "t.tsv") == (["a, b", "c"], ["pos", "neg"])


def test_lists_have_a_text_or_a_file_a_line(tmp_path: pathlib.Path) -> None:
    assert read(tmp_path, "a b\tpos\n\nc\tneg\n", "t.txt") == (["a b", "c"], ["pos", "neg"])
    (tmp_path / "one.txt").write_text("\ufeffwhat it says\r\n", encoding="utf-8")
    assert read(tmp_path, "one.txt\n", "list.txt") == (["what it says"], [])


def test_folders_are_classes(tmp_path: pathlib.Path) -> None:
    for name, label in (("1", "pos"), ("2", "pos"), ("3", "neg")):
        (tmp_path / "d" / label).mkdir(parents=True, exist_ok=True)
        (tmp_path / "d" / label / f"{name}.txt").write_text(f"text {name}\n")
    found = read_text_table(str(tmp_path / "d"))
    assert (found.columns["text"], found.classes) == (["text 3", "text 1", "text 2"], ["neg", "pos", "pos"])


def test_few_texts_beside_the_folders_of_the_classes_are_left_out_and_told(tmp_path: pathlib.Path) -> None:
    """As the lists of addresses beside the reviews of aclImdb."""
    for name in ("pos/0_9.txt", "neg/0_1.txt", "urls_pos.txt"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(name)
    data = open_dataset(str(tmp_path), TEXT)
    beside = "1 file beside the folders of the classes, such as urls_pos.txt, is left out"
    assert (data.classes, list(data.notes())) == (["neg", "pos"], [f"{tmp_path}: {beside}"])
    assert len(texts_of(str(tmp_path))) == 3


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("t.csv", b"", "there are no texts here"),
        ("t.csv", b"text,label\n", "there are no texts here"),
        ("t.csv", b"text,label\na,b,c\n", "row 2 has 3 columns, the first 2"),
        ("t.csv", b"text\n\xff\xfe\n", "this is no table"),
        ("t.txt", b"caf\xe9", "this is no text in UTF-8"),
        ("t.txt", b"a\tpos\nb\n", "2 texts are listed, but only 1 with a class"),
    ],
)
def test_what_is_no_table_of_texts_is_said(name: str, content: bytes, message: str, tmp_path: pathlib.Path) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises((UsageError, FormatError), match=message):
        read_text_table(str(tmp_path / name))


def test_a_folder_without_texts_says_what_it_may_hold(tmp_path: pathlib.Path) -> None:
    with pytest.raises(UsageError, match=r"there are no texts in this folder; it may hold \.txt files"):
        read_text_table(str(tmp_path))


def test_a_folder_of_pictures_is_not_taken_for_its_licence(tmp_path: pathlib.Path) -> None:
    (tmp_path / "LICENSE.txt").write_text("all rights")
    for name in ("a.jpg", "b.png"):
        (tmp_path / name).write_bytes(b"")
    with pytest.raises(UsageError, match="this folder has pictures or recordings, and the model takes texts"):
        read_text_table(str(tmp_path))


def test_inputs_are_fed_texts_words_numbers_and_records(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("text,age,label\na b c,7,0\nd,8,1\n")
    features = (
        RecordFeature(b"review", STRING, 1),
        RecordFeature(b"age", INT64, 1),
        RecordFeature(b"tags", STRING, None),
    )
    inputs = (
        ModelInput("text:0", (1, 1), np.dtype(object)),
        ModelInput("serving_default_age:0", (1, 1), np.dtype(np.float32)),
    )
    text, age = next(open_dataset(str(path), inputs).samples())
    assert (text.tolist(), age.tolist(), age.dtype) == ([[b"a b c"]], [[7.0]], np.float32)
    words = ModelInput("w:0", (1, 2), np.dtype(object), takes_words=True)
    assert [sample[0].tolist() for sample in open_dataset(str(path), (words,)).samples()] == [
        [[b"a", b"b"]],
        [[b"d", b""]],
    ]
    any_number = ModelInput("w:0", (1, 1), np.dtype(object), takes_words=True)
    assert next(open_dataset(str(path), (any_number,)).samples())[0].tolist() == [[b"a", b"b", b"c"]]
    record = ModelInput("r:0", (1,), np.dtype(object), features[:2])
    (made,) = next(open_dataset(str(path), (record,)).samples())
    assert b"review" in made[0]
    assert b"a b c" in made[0]
    assert b"age\x12\x05\x1a\x03\x0a\x01\x07" in made[0]  # a packed list with the integer 7


def test_a_feature_of_several_numbers_is_read_from_numbered_columns(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("sizes_0,sizes_1,city,label\n7,8,rom,0\n9,1,bonn,1\n")

    def record(size: int | None) -> ModelInput:
        return ModelInput("r:0", (1,), np.dtype(object), (RecordFeature(b"sizes", INT64, size),))

    for size in (2, None):
        (made,) = next(open_dataset(str(path), (record(size),)).samples())
        assert b"sizes\x12\x06\x1a\x04\x0a\x02\x07\x08" in made[0]  # a packed list of 7 and 8
    with pytest.raises(UsageError, match=r"need the feature 'sizes'"):
        open_dataset(str(path), (record(3),))


def test_columns_and_features_that_are_missing_are_named(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("text,label\na,0\n")
    with pytest.raises(UsageError, match=r"no column for the input 'age'.*there are text, label"):
        open_dataset(str(path), (*TEXT, ModelInput("age:0", (1,), np.dtype(np.float32))))
    record = ModelInput(
        "r:0", (1,), np.dtype(object), (RecordFeature(b"review", STRING, 1), RecordFeature(b"x", FLOAT, 1))
    )
    with pytest.raises(UsageError, match=r"need the feature 'x'"):
        open_dataset(str(path), (record,))


def test_arrays_of_texts_are_taken_by_name(tmp_path: pathlib.Path) -> None:
    np.savez(tmp_path / "t.npz", text=np.array(["a", "b"]), labels=np.array([1, 0]))
    data = open_dataset(str(tmp_path / "t.npz"), TEXT)
    assert [sample[0].tolist() for sample in data.samples()] == [[b"a"], [b"b"]]
    assert data.classes == ["1", "0"]
    with pytest.raises(UsageError, match="there are 2 samples but 3 labels"):
        open_dataset({"text": np.array(["a", "b"]), "labels": np.array([1, 0, 1])}, TEXT)


def test_the_identity_of_texts_is_that_of_their_content() -> None:
    one, same, other = (open_dataset({"text": np.array(texts, object)}, TEXT).identity()
                        for texts in (["a", "b"], ["a", "b"], ["a", "c"]))  # fmt: skip
    assert one == same != other


CITY = ModelInput("serving_default_city:0", (1, 1), np.dtype(object))
NUMBERS = ModelInput("serving_default_numbers:0", (1, 3), np.dtype(np.float32))
WORDS = ModelInput("words:0", (1, 4), np.dtype(object), takes_words=True)


def test_rows_of_arrays_are_samples() -> None:
    numbers = np.arange(6, dtype=np.float32).reshape(2, 3) / 7
    cities = np.array([["New York"], ["Oslo"]])
    made, _, _ = read_texts({"city": cities, "numbers": numbers}, (CITY, NUMBERS))
    assert [array.tolist() for array in made[0]] == [[[b"New York"]], [[b"Oslo"]]]
    np.testing.assert_array_equal(np.concatenate(list(made[1])), numbers)


def test_words_of_an_array_keep_their_places() -> None:
    words = np.array([["a", "", "b c", ""], ["d", "e", "f", "g"]])
    [made], _, _ = read_texts({"words": words}, (WORDS,))
    assert [array.tolist() for array in made] == [[[b"a", b"", b"b c", b""]], [[b"d", b"e", b"f", b"g"]]]


def test_columns_side_by_side_are_an_input_of_several_numbers(tmp_path: pathlib.Path) -> None:
    (tmp_path / "rows.csv").write_text("city,age,income,size\nOslo,1,2.5,3\nLima,4,5,6\n")
    made, _, _ = read_texts(tmp_path / "rows.csv", (CITY, NUMBERS))
    assert [array.tolist() for array in made[0]] == [[[b"Oslo"]], [[b"Lima"]]]
    np.testing.assert_array_equal(np.concatenate(list(made[1])), [[1, 2.5, 3], [4, 5, 6]])
    (tmp_path / "rows.csv").write_text("city,age,income\nOslo,1,2.5\n")
    with pytest.raises(UsageError, match="there is no column for the input 'numbers'; there are city, age, income"):
        read_texts(tmp_path / "rows.csv", (CITY, NUMBERS))


@pytest.mark.parametrize("first", [0, 1])
def test_columns_with_numbers_behind_an_inputs_name_are_its_vector(first: int, tmp_path: pathlib.Path) -> None:
    path = tmp_path / "table.csv"
    path.write_text(f"user,clicks_{first + 1},clicks_{first},age,label\nann,2,1,30,0\nbob,4,3,40,1\n")
    inputs = (
        ModelInput("user:0", (1, 1), np.dtype(object)),
        ModelInput("serving_default_clicks:0", (1, 2), np.dtype(np.float32)),
    )
    (_, clicks), classes, _ = read_texts(str(path), inputs)
    assert [row.tolist() for row in clicks] == [[[1.0, 2.0]], [[3.0, 4.0]]]
    assert classes == ["0", "1"]


def test_the_only_column_that_no_input_takes_is_that_of_classes(tmp_path: pathlib.Path) -> None:
    """As of a wide model: columns of texts and numbers are inputs, what is left is what is to be told."""
    (tmp_path / "t.csv").write_text("age,job,income\n30,clerk,low\n40,smith,high\n50,clerk,low\n60,smith,high\n")
    inputs = (ModelInput("age:0", (1,), np.dtype(np.float32)), ModelInput("job:0", (1,), np.dtype(object)))
    made, classes, _ = read_texts(str(tmp_path / "t.csv"), inputs)
    assert classes == ["low", "high", "low", "high"]
    assert [float(row.item()) for row in made[0]] == [30, 40, 50, 60]
    _, none, _ = read_texts(str(tmp_path / "t.csv"), (*inputs, ModelInput("income:0", (1,), np.dtype(object))))
    assert none == []


@pytest.mark.parametrize(("name", "shape"), [
    ("spectrum", (1, 61, 129)), ("spectrum", (1, 98, 40)), ("spectrum", (1, 40)), ("fingerprint_input:0", (1, 3920)),
])  # fmt: skip
def test_a_recording_is_no_spectrum_of_fitting_size(tmp_path: pathlib.Path, name: str, shape: tuple[int, ...]) -> None:
    with wave.open(str(tmp_path / "a.wav"), "wb") as file:
        file.setparams((1, 2, 16000, 0, "NONE", ""))
        file.writeframes(bytes(2 * 16000))
    with pytest.raises(UsageError, match="no recording but what is made of one") as refused:
        open_dataset(str(tmp_path), (ModelInput(name, shape, np.dtype(np.float32)),))
    assert "judged by evaluate" in str(refused.value.hint)
