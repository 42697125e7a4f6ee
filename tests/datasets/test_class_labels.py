"""Which class of a model's scores a sample's class is."""

from __future__ import annotations

import pathlib

import numpy as np
import pytest

from pocketgraph.datasets.class_labels import NO_LABEL, classes_and_numbers, indices, read_labels
from pocketgraph.errors import FormatError, UsageError


def test_digits_that_are_no_numbers_are_names() -> None:
    assert indices(["²", "m²", "²"], None, 2) == [1, 0, 1]
    assert indices(["²", "0"], None, 3) is None
    assert indices(["²", "0"], ["0", "²"], 2) == [1, 0]


def test_folders_are_found_by_the_labels_that_retrain_gives_them() -> None:
    assert indices(["Golden_Retriever", "Grün & Blau", "cat"], ["cat", "golden retriever", "grün blau"], 3) == [1, 2, 0]
    assert indices(["Grün", "rot"], ["gr n", "rot"], 2) == [0, 1]  # as retrain.py calls it
    with pytest.raises(UsageError, match="does not have the class 'c#'"):  # which would be the same as c++
        indices(["C++", "C#"], ["c", "d"], 2)
    with pytest.raises(UsageError, match="the class 'c' 2 times"):
        indices(["C++"], ["c", "c#"], 2)


def test_classes_are_found_in_lines_that_have_numbers_or_ids_before_the_names() -> None:
    """As Teachable Machine, Coral and ImageNet's synset_words.txt write them."""
    for lines in (["0 cat", "1 big owl"], ["0: cat", "1: Big_Owl"], ["0,cat", "1,big owl"], ["12\tcat", "7\tbig owl"]):
        assert indices(["big owl", "cat"], lines, 2) == [1, 0]
    assert indices(["n01443537", "n01440764"], ["n01440764 tench, Tinca", "n01443537 goldfish"], 2) == [1, 0]
    with pytest.raises(UsageError, match="the class 'cent' 2 times"):
        indices(["cent"], ["1 cent", "2 cent"], 2)


def test_a_class_beyond_the_scores_is_told_where_classes_are_numbers() -> None:
    with pytest.raises(UsageError, match="does not have the class '3'; classes by number are 0 to 2 here"):
        indices(["1", "2", "3"], ["a", "b", "c"], 3)


def test_samples_of_no_other_class_are_told_what_their_label_is() -> None:
    """As ``_unknown_`` is, which nobody guesses of a folder called other."""
    with pytest.raises(
        UsageError, match="class 'other'; '_unknown_' is the class of samples that are none of the others"
    ):
        indices(["up", "other"], ["_silence_", "_unknown_", "up"], 3)


def test_labels_of_bytes_are_texts() -> None:
    """NumPy makes an array of bytes of what TensorFlow's datasets call texts."""
    assert classes_and_numbers(np.array([b"cat", "Grün".encode(), b"\xff"]))[0] == ["cat", "Grün", "\\xff"]
    assert classes_and_numbers(np.array([[b"a"], [b"b"]]))[0] == ["a", "b"]


@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_floats_too_large_to_tell_whole_numbers_apart_are_no_classes() -> None:
    classes, numbers = classes_and_numbers(np.array([1e20, 2.0]))
    assert classes == []
    assert numbers is not None
    assert numbers.tolist() == [[1e20], [2.0]]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("list.json", '["cat", "dog", "big owl"]'),
        ("by_index.json", '\ufeff{"1": "dog", "0": "cat", "2": "big owl"}'),
        ("imagenet_class_index.json", '{"0": ["n1", "cat"], "1": ["n2", "dog"], "2": ["n3", "big owl"]}'),
        ("class_indices.json", '{"dog": 1, "cat": 0, "big owl": 2}'),
        ("blanks.json", '["cat", " dog ", "big\\nowl"]'),
        ("metadata.json", '{"imageSize": 224, "labels": ["cat", "dog", "big owl"]}'),
        ("config.json", '{"model_type": "vit", "labels": [], "id2label": {"0": "cat", "1": "dog", "2": "big owl"}}'),
        ("yamnet_class_map.csv", '\ufeffindex,mid,display_name\r\n0,/m/1,cat\r\n2,/m/3,"big owl"\r\n1,/m/2,dog\r\n'),
        ("plain.csv", "cat\ndog\nbig owl\n"),
        ("headed.csv", "label\ncat\ndog\nbig owl\n"),
    ],
)
def test_files_of_labels_that_are_met(name: str, text: str, tmp_path: pathlib.Path) -> None:
    (tmp_path / name).write_bytes(text.encode())
    assert read_labels(tmp_path / name) == ["cat", "dog", "big owl"]


def test_classes_are_called_as_they_are_in_json(tmp_path: pathlib.Path) -> None:
    (tmp_path / "indices.json").write_text('{"cat": 0, "labels": 1, "id2label": 2}')
    assert read_labels(tmp_path / "indices.json") == ["cat", "labels", "id2label"]
    (tmp_path / "indices.json").write_text('{"dog": 2, "cat": 1}')
    assert read_labels(tmp_path / "indices.json") == [NO_LABEL, "cat", "dog"]


def test_an_empty_row_of_a_table_takes_a_place_unless_places_are_told(tmp_path: pathlib.Path) -> None:
    (tmp_path / "labels.csv").write_text("name\nbird\n\nfish\n\n")
    assert read_labels(tmp_path / "labels.csv") == ["bird", "", "fish"]
    (tmp_path / "labels.csv").write_text("name,id\nbird,0\n\nfish,1\n\n")
    assert read_labels(tmp_path / "labels.csv") == ["bird", "fish"]


def test_a_class_that_json_leaves_out_has_no_label(tmp_path: pathlib.Path) -> None:
    (tmp_path / "labels.json").write_text('{"0": "cat", "2": "owl"}')
    assert read_labels(tmp_path / "labels.json") == ["cat", NO_LABEL, "owl"]


@pytest.mark.parametrize(
    "text",
    [
        "{}", "[]", "7", "{", '{"a": 1.5}', '{"99999999999": "a"}', '{"-1": "a"}', '["a", 3]', '[["a", 3]]', "[" * 9999,
        '{"num_classes": 5}', '{"a": 0}', '{"a": 0, "b": 0}', '{"a": 0, "b": 2}', '{"a": 2, "b": 3}',
        '{"a": false, "b": true}', '{"labels": {"a": 4}}', '{"labels": [], "0": "a"}',
    ],
)  # fmt: skip
def test_json_of_something_else_is_refused(text: str, tmp_path: pathlib.Path) -> None:
    (tmp_path / "labels.json").write_text(text)
    with pytest.raises(FormatError, match="this JSON has no names of classes"):
        read_labels(tmp_path / "labels.json")


def test_a_table_of_samples_is_no_table_of_classes(tmp_path: pathlib.Path) -> None:
    (tmp_path / "samples.csv").write_text("width,label\n1,cat\n2,dog\n3,cat\n4,cat\n")
    with pytest.raises(FormatError, match="this table tells the class of samples"):
        read_labels(tmp_path / "samples.csv")


@pytest.mark.parametrize("text", ["cat,felis\ndog,canis\n", "label,x\n", "index,label\nx,cat\n"])
def test_a_csv_of_no_such_columns_is_lines(text: str, tmp_path: pathlib.Path) -> None:
    (tmp_path / "labels.csv").write_text(text)
    assert read_labels(tmp_path / "labels.csv") == text.splitlines()
