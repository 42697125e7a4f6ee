"""Arrays that stay in their file give the samples that NumPy reads there."""

from __future__ import annotations

import pathlib
import struct
import tempfile
import zipfile
from typing import Any

import numpy as np
import pytest

from pocketgraph.datasets import stored_arrays
from pocketgraph.datasets.evaluation_dataset import open_dataset
from pocketgraph.datasets.model_input import ModelInput
from pocketgraph.datasets.stored_arrays import StoredArray, read_arrays, sample_of, subset_of, whole
from pocketgraph.errors import FormatError, UsageError

ROWS = np.random.default_rng(0).normal(size=(40, 3, 5)).astype(np.float32)
INPUT = (ModelInput("x:0", (1, 3, 5), np.dtype(np.float32)),)


@pytest.fixture(autouse=True)
def _small_is_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stored_arrays, "LARGE", 1000)


def write(path: pathlib.Path, save: Any, **arrays: Any) -> pathlib.Path:
    save(path, **arrays)
    return path


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_samples_of_an_npz_file_are_those_of_numpy(tmp_path: pathlib.Path, save: Any) -> None:
    path = write(tmp_path / "a.npz", save, x=ROWS, labels=np.arange(40), far=np.asfortranarray(ROWS))
    found = read_arrays(str(path))
    assert isinstance(found["x"], StoredArray)
    assert (found["x"].shape, found["x"].ndim, len(found["x"])) == ((40, 3, 5), 3, 40)
    chosen = subset_of(subset_of(found["x"], np.arange(10, 40)), np.array([3, 7]))
    np.testing.assert_array_equal(whole(chosen), ROWS[[13, 17]])
    np.testing.assert_array_equal(sample_of(found["x"], 5), ROWS[5])
    np.testing.assert_array_equal(found["far"], ROWS)
    np.testing.assert_array_equal(found["labels"], np.arange(40))


def test_an_npy_file_and_what_becomes_of_its_samples(tmp_path: pathlib.Path) -> None:
    np.save(tmp_path / "a.npy", ROWS)
    data = open_dataset(tmp_path / "a.npy", INPUT)
    assert isinstance(data.arrays[0], StoredArray)
    (sample,) = list(data.after(30).take(2).samples())[1]
    np.testing.assert_array_equal(sample[0], ROWS[31])
    stored_arrays.LARGE = 1 << 20  # restored by the fixture
    assert open_dataset(tmp_path / "a.npy", INPUT).identity() == data.identity()


@pytest.mark.parametrize("kept", [60, 500, 2000])
@pytest.mark.parametrize("name", ["a.npy", "a.npz"])
def test_shortened_files_are_refused(tmp_path: pathlib.Path, name: str, kept: int) -> None:
    path = tmp_path / name
    np.save(path, ROWS) if name == "a.npy" else np.savez(path, x=ROWS)
    path.write_bytes(path.read_bytes()[:kept])
    with pytest.raises(FormatError, match=r"damaged one"):
        read_arrays(str(path))


def test_a_file_that_grows_shorter_is_noticed(tmp_path: pathlib.Path) -> None:
    np.save(tmp_path / "a.npy", ROWS)
    found = read_arrays(str(tmp_path / "a.npy"))[""]
    with open(tmp_path / "a.npy", "r+b") as file:
        file.truncate(600)
    with pytest.raises(FormatError, match="has become shorter"):
        sample_of(found, 39)


def test_objects_are_not_unpickled(tmp_path: pathlib.Path) -> None:
    np.savez(tmp_path / "a.npz", x=np.array([{"a": 1}] * 500, object))
    with pytest.raises(FormatError, match=r"this holds Python objects, which are not read.*array\.astype\(str\)"):
        read_arrays(str(tmp_path / "a.npz"))


def test_what_is_no_array_is_not_unpacked(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "TemporaryFile", None)
    with zipfile.ZipFile(tmp_path / "a.npz", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("x.npy", bytes(stored_arrays.LARGE + 1))
    with pytest.raises(FormatError, match="magic string"):
        read_arrays(str(tmp_path / "a.npz"))


def described(dtype: str, shape: str) -> bytes:
    """The beginning of an .npy file."""
    text = f"{{'descr': {dtype}, 'fortran_order': False, 'shape': {shape}}}\n".encode()
    return b"\x93NUMPY\1\0" + struct.pack("<H", len(text)) + text


@pytest.mark.parametrize(("dtype", "shape"), [("'<U0'", "(3,)"), ("'<f4'", "(0, 9)"), ("'<f4'", "(4000000000, 0)")])
def test_an_array_without_bytes_is_read_as_numpy_reads_it(tmp_path: pathlib.Path, dtype: str, shape: str) -> None:
    path = tmp_path / "a.npy"
    path.write_bytes(described(dtype, shape) + bytes(2000))
    expected = np.load(path)
    found = whole(read_arrays(str(path))[""])
    assert (found.shape, found.dtype) == (expected.shape, expected.dtype)


def test_an_array_of_arrays_is_refused(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "a.npy"
    path.write_bytes(described("('<f4', (4,))", "(50,)") + bytes(2000))
    with pytest.raises(FormatError, match="damaged one"):
        list(read_arrays(str(path))[""])


def test_an_array_of_negative_size_is_refused(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "a.npy"
    path.write_bytes(described("'<f4'", "(-5, 3)") + bytes(2000))
    with pytest.raises(FormatError, match=r"an array of the shape \[-5, 3\]"):
        read_arrays(str(path))


def test_arrays_are_found_by_the_keys_of_any_signature(tmp_path: pathlib.Path) -> None:
    """TensorFlow 2 names the placeholders of the signature ``decode`` ``decode_frames`` and ``decode_frame_limit``."""
    inputs = (
        ModelInput("decode_frames:0", (1, 3, 5), np.dtype(np.float32)),
        ModelInput("decode_frame_limit:0", (1, 1), np.dtype(np.float32)),
    )
    limits = np.arange(40, dtype=np.float32).reshape(40, 1)
    path = write(tmp_path / "a.npz", np.savez, frame_limit=limits, frames=ROWS, other=ROWS)
    frames, limit = list(open_dataset(path, inputs).samples())[7]
    np.testing.assert_array_equal(frames, ROWS[7:8])
    np.testing.assert_array_equal(limit, [[7]])
    (alone,) = list(open_dataset(path, inputs[:1]).samples())[7]
    np.testing.assert_array_equal(alone, ROWS[7:8])
    for names in (("frames", "limit"), ("limit", "frame")):
        path = write(tmp_path / "b.npz", np.savez, **dict.fromkeys(names, ROWS))
        with pytest.raises(UsageError, match=r"there is no array for the input 'decode_frame"):
            open_dataset(path, inputs)


def test_an_array_may_be_named_as_the_placeholder_behind_a_signatures_key(tmp_path: pathlib.Path) -> None:
    """A SavedModel of Keras calls its input x, and the graph that is frozen of it serving_default_x."""
    inputs = (INPUT[0], ModelInput("z:0", (1, 2), np.dtype(np.float32)))
    path = write(tmp_path / "a.npz", np.savez, serving_default_x=ROWS, serving_default_z=ROWS[:, 0, :2])
    assert len(open_dataset(str(path), inputs)) == 40
    with pytest.raises(UsageError, match="there is no array for the input 'y:0'"):
        open_dataset(str(path), (ModelInput("y:0", (1, 2), np.dtype(np.float32)), inputs[1]))
    with pytest.raises(UsageError, match=r"there are a0, a1, a2, a3, a4, a5, a6, a7, a8, a9 …"):
        open_dataset({f"a{number}": ROWS for number in range(85)}, inputs)


def test_a_row_of_numbers_is_fed_as_it_is_where_that_is_what_the_model_takes() -> None:
    """Of a network that takes the lengths of all words of one text, no batch."""
    inputs = (ModelInput("x:0", (1, 3, 9), np.dtype(np.float32)), ModelInput("lengths:0", (3,), np.dtype(np.int32)))
    found = open_dataset({"x": np.zeros((1, 3, 9), np.float32), "lengths": np.array([4, 9, 2])}, inputs)
    ((_, lengths),) = found.samples()
    np.testing.assert_array_equal(lengths, np.array([4, 9, 2], np.int32), strict=True)


def test_a_number_a_row_fills_the_batch_as_the_rows_do() -> None:
    inputs = (ModelInput("x:0", (6, 4), np.dtype(np.float32)), ModelInput("lengths:0", (6,), np.dtype(np.int32)))
    found = open_dataset({"x": np.ones((6, 4), np.float32), "lengths": np.arange(6)}, inputs)
    assert [lengths.tolist() for _, lengths in found.samples()] == [[number] * 6 for number in range(6)]
