"""Tables of numbers: rows that do not fit their head are told by what they say, not by what the head says."""

from __future__ import annotations

import pathlib

import numpy as np
import pytest

from pocketgraph.datasets.csv_tables import read_table, rows_of
from pocketgraph.datasets.evaluation_dataset import open_dataset
from pocketgraph.datasets.model_input import ModelInput
from pocketgraph.datasets.text_samples import read_texts
from pocketgraph.errors import FormatError, UsageError


def table(tmp_path: pathlib.Path, text: str) -> str:
    path = tmp_path / "a.csv"
    path.write_text(text)
    return str(path)


def test_a_column_of_classes_is_named_or_the_last(tmp_path: pathlib.Path) -> None:
    (numbers,), classes, _ = read_table(table(tmp_path, "label,a,b\n7,1,2\n8,3,4\n"), [2])
    np.testing.assert_array_equal(numbers, [[1, 2], [3, 4]])
    assert classes == ["7", "8"]
    (numbers,), classes, _ = read_table(table(tmp_path, "1,2,x\n"), [2])
    np.testing.assert_array_equal(numbers, [[1, 2]])
    assert classes == ["x"]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("Age,g_1,g_0,id,label\n30,5,4,7,1\n", ""),
        ("id,g1,g2,age,label\n7,4,5,30,1\n", ""),
        ("id,red,green,age,label\n7,4,5,30,1\n", "id, g_0 to g_1, age"),
        ("7,4,5,30,1\n", "id, g_0 to g_1, age"),
    ],
)
def test_columns_of_inputs_of_several_numbers_are_named_or_the_order_is_told(
    tmp_path: pathlib.Path, text: str, told: str
) -> None:
    sizes = {"id": 1, "g": 2, "age": 1}
    inputs = tuple(ModelInput(f"serving_default_{name}:0", (1, size), np.dtype("f")) for name, size in sizes.items())
    data = open_dataset(table(tmp_path, text), inputs)
    assert [array.tolist() for array in next(data.samples())] == [[[7]], [[4, 5]], [[30]]]
    assert [told in note for note in data.notes()] == [True] * bool(told)
    with pytest.raises(UsageError, match="column 4 is called 'id', but by the inputs' order that is column 1"):
        open_dataset(table(tmp_path, "age,red,green,id\n30,4,5,7\n"), inputs)


def test_a_head_that_names_a_class_beyond_the_rows(tmp_path: pathlib.Path) -> None:
    (numbers,), classes, _ = read_table(table(tmp_path, "a,b,c,d,label\n1,2,3\n"), [2])
    np.testing.assert_array_equal(numbers, [[1, 2]])
    assert classes == ["3"]


@pytest.mark.parametrize(
    ("text", "kind", "part"),
    [
        ("a,b\n1,x\n", FormatError, "row 1 has 'x', which is no number"),
        ("age,job\n1,nurse\n2,smith\n3,nurse\n", FormatError, "leave column 'job' out, or make 2 columns of 0 and 1"),
        ("age,size\n1,2\n2,?\n", FormatError, "other rows have numbers in column 'size': mend this one"),
        ("1,2\n2,\n", FormatError, "fill in what column number 2 leaves empty"),
        ("1,2\n1\n", UsageError, "row 2 has 1 column, the first 2; it may be cut off"),
        ("1,2\n1,5,2,5\n", UsageError, "marks decimals looks like one between columns; separate columns by semicolons"),
        ("1,2\n1,a,2\n", UsageError, "a cell with a comma in it goes into quotes"),
        ("1,2,3,4\n", UsageError, "several numbers that it should give go into an .npz, as 'targets'"),
        ("1,2,3,4\n", UsageError, "a row has 4 columns, and the model takes 2 numbers"),
        ("1,2,3,4\n", UsageError, "leave out the columns that it does not take; where it takes any number of them"),
        ("1\n2\n3\n", UsageError, "a row is one sample, 2 columns; cut a series into such rows"),
        ("a,b\n", UsageError, "no samples"),
    ],
)
def test_what_does_not_fit_is_said(tmp_path: pathlib.Path, text: str, kind: type[Exception], part: str) -> None:
    with pytest.raises(kind, match=part):
        read_table(table(tmp_path, text), [2])


def test_names_of_tables_and_arrays_in_capitals(tmp_path: pathlib.Path) -> None:
    (tmp_path / "A.TSV").write_text("1\t2\tx\n")
    (tmp_path / "A.CSV").write_text("1,2,x\n")
    np.savez(tmp_path / "a.npz", x=np.float32([[1, 2]]))
    (tmp_path / "a.npz").rename(tmp_path / "A.NPZ")
    inputs = (ModelInput("x:0", (1, 2), np.dtype(np.float32)),)
    for name in ("A.TSV", "A.CSV", "A.NPZ"):
        np.testing.assert_array_equal(next(open_dataset(tmp_path / name, inputs).samples()), [[[1, 2]]])


@pytest.mark.parametrize(
    ("text", "numbers", "classes"),
    [
        ("a;b;label\n1,5;-2;x\n3;,4;y\n", [[1.5, -2], [3, 0.4]], ["x", "y"]),
        ("1,5;2,25;0\n", [[1.5, 2.25]], ["0"]),  # three cells by commas, too
        ("a\tb\tlabel\n1\t2\tx\n", [[1, 2]], ["x"]),
        ("1,5\t2\t0\n2,5\t3\t1\n", [[1.5, 2], [2.5, 3]], ["0", "1"]),
        ('"a";"b";"label"\r\n"1";"2";"so, and; so"\r\n', [[1, 2]], ["so, and; so"]),
    ],
)
def test_tables_of_spreadsheets_with_semicolons(
    tmp_path: pathlib.Path, text: str, numbers: list[list[float]], classes: list[str]
) -> None:
    (found,), named, _ = read_table(table(tmp_path, text), [2])
    np.testing.assert_array_equal(found, numbers)
    assert named == classes


def test_numbers_in_tsv_files_may_have_a_decimal_comma(tmp_path: pathlib.Path) -> None:
    (tmp_path / "a.tsv").write_text("1,5\t-,25\ta, b\n")
    (found,), named, _ = read_table(str(tmp_path / "a.tsv"), [2])
    np.testing.assert_array_equal(found, [[1.5, -0.25]])
    assert named == ["a, b"]


def test_semicolons_in_texts_separate_nothing(tmp_path: pathlib.Path) -> None:
    assert rows_of(table(tmp_path, "so; and so\nall in one\n")) == [["so; and so"], ["all in one"]]
    assert rows_of(table(tmp_path, "a; b,x\nc; d,y\n")) == [["a; b", "x"], ["c; d", "y"]]
    assert rows_of(table(tmp_path, "one; text\n")) == [["one; text"]]


@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_numbers_that_an_input_cannot_hold_are_said(tmp_path: pathlib.Path) -> None:
    path = table(tmp_path, "1,2\n3,3000000000\n")
    with pytest.raises(UsageError, match=r"sample 2 has 3e\+09, and the input 'x:0' takes int32"):
        list(open_dataset(path, (ModelInput("x:0", (1, 2), np.dtype(np.int32)),)).samples())
    with pytest.raises(UsageError, match=r"sample 2 has 0\.5, and the input 'x:0' takes uint8; scale and round"):
        inputs = (ModelInput("x:0", (1, 2), np.dtype(np.uint8)),)
        list(open_dataset(table(tmp_path, "1,2\n3,0.5\n"), inputs).samples())
    data = open_dataset(table(tmp_path, "1,2\n3,1e39\n"), (ModelInput("x:0", (1, 2), np.dtype(np.float32)),))
    assert np.isinf([*data.samples()][1][0]).any()
    assert data.without_gaps()[1].endswith("sample 2 is left out, which holds NaN or infinity")


@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.parametrize("kind", [np.float16, np.float32, np.float64])
def test_integers_as_floats_of_any_width(kind: type[np.floating]) -> None:
    inputs = (ModelInput("x:0", (1, 2), np.dtype(np.int32)),)
    least = -60000 if kind is np.float16 else -(2**31)
    (found,) = open_dataset({"x": np.array([[least, 3]], kind)}, inputs).samples()
    np.testing.assert_array_equal(found[0], [[least, 3]])
    if kind is not np.float16:
        data = open_dataset({"x": np.array([[2**31, 3]], kind)}, inputs)  # one more than the largest
        with pytest.raises(UsageError, match=r"sample 1 has 2.14748e\+09, and the input 'x:0' takes int32"):
            list(data.samples())


def test_columns_are_the_inputs_by_their_names(tmp_path: pathlib.Path) -> None:
    place = table(tmp_path, "Age,kind,y,height\n1,5,no,2\n3,6,yes,4\n")
    names = ("serving_default_height:0", "tower/age:0", "kind:0")
    data = open_dataset(place, tuple(ModelInput(name, (1, 1), np.dtype(np.float32)) for name in names))
    assert [np.ravel(sample).tolist() for sample in data.samples()] == [[2, 1, 5], [4, 3, 6]]
    assert data.classes == ["no", "yes"]
    others = open_dataset(place, tuple(ModelInput(name, (1, 1), np.dtype(np.float32)) for name in ("a", "b", "c")))
    assert np.ravel(next(others.samples())).tolist() == [1, 5, 2]


def test_columns_are_named_by_the_keys_of_any_signature(tmp_path: pathlib.Path) -> None:
    """TensorFlow 2 calls the placeholders of a signature 'decode' decode_a and decode_b."""
    (a, b), classes, _ = read_table(table(tmp_path, "b,y,a\n1,0,2\n3,1,4\n"), [1, 1], ["decode_a", "decode_b"])
    assert (a.ravel().tolist(), b.ravel().tolist(), classes) == ([2, 4], [1, 3], ["0", "1"])


def test_columns_beside_texts_are_named_by_the_keys_of_any_signature(tmp_path: pathlib.Path) -> None:
    inputs = (
        ModelInput("judge_review:0", (1,), np.dtype(object)),
        ModelInput("judge_clicks:0", (1, 2), np.dtype(np.float32)),
    )
    text = "clicks_1,review,clicks_0,label\n" + "".join(f"{at},a film of {at},{at + 9},{at % 2}\n" for at in range(6))
    (reviews, clicks), classes, _ = read_texts(table(tmp_path, text), inputs)
    rows = sorted(zip([cell.item() for cell in reviews], [cell.tolist() for cell in clicks], classes, strict=True))
    assert rows[1] == (b"a film of 1", [[10.0, 1.0]], "1")


def test_texts_for_a_file_without_what_reads_them_want_the_graph(tmp_path: pathlib.Path) -> None:
    with pytest.raises(UsageError, match="texts are for the graph that reads them; name that first"):
        read_table(table(tmp_path, "review,label\na lovely film,1\nso dull,0\n"), [24])
    with pytest.raises(UsageError, match=r"a list of files is a \.txt file"):
        read_table(table(tmp_path, "path,label\nphotos/a.JPG,1\nphotos/b.jpg,0\n"), [24])


def test_tables_as_programs_of_windows_write_them(tmp_path: pathlib.Path) -> None:
    path, text = tmp_path / "a.tsv", "Länge\tBreite\tlabel\r\n0,5\t2,5\tgroß\r\n"
    path.write_text(text, encoding="utf-16", newline="")  # Excel's Unicode text
    (numbers,), classes, _ = read_table(str(path), [2])
    np.testing.assert_array_equal(numbers, [[0.5, 2.5]])
    assert classes == ["groß"]
    path.write_text(text, encoding="cp1252", newline="")
    with pytest.raises(
        FormatError, match=r"no table in UTF-8 .* at byte 1.; save it in UTF-8: Excel calls that CSV UTF-8"
    ):
        read_table(str(path), [2])


def test_long_numbers_of_classes_stay_apart(tmp_path: pathlib.Path) -> None:
    _, classes, _ = read_table(table(tmp_path, "1,2,9007199254740993\n3,4,9007199254740992\n5,6,7.0\n"), [2])
    assert classes == ["9007199254740993", "9007199254740992", "7"]


def test_codes_of_classes_keep_their_zeros(tmp_path: pathlib.Path) -> None:
    _, classes, _ = read_table(table(tmp_path, "1,2,007\n3,4,42\n5,6,-1\n7,8, 3.0\n"), [2])
    assert classes == ["007", "42", "-1", "3"]


def test_rows_of_nothing_but_blanks_are_no_samples(tmp_path: pathlib.Path) -> None:
    (numbers,), _, _ = read_table(table(tmp_path, "a,b\n1,2\n,\n3,4\n  \n"), [2])
    assert numbers.tolist() == [[1, 2], [3, 4]]


def test_the_column_of_a_number_that_is_none_is_not_that_of_the_class(tmp_path: pathlib.Path) -> None:
    with pytest.raises(FormatError, match="row 2 has 'x'") as caught:
        read_table(table(tmp_path, "label,a,b\nw,1,2\nx,3,x\n"), [2])
    assert "other rows have numbers in column 'b'" in str(caught.value)
