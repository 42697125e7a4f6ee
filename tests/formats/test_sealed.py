"""Sealed files: opened with their key only, and every change found."""

from __future__ import annotations

import builtins
import os
import pathlib
import struct
from typing import Any

import numpy as np
import pytest

import pocketgraph
from pocketgraph import formats
from pocketgraph.errors import FormatError, MissingExtraError, UsageError
from pocketgraph.formats import sealed
from pocketgraph.graph import DType, Graph, Node, Shape, const
from support import ROOT

pytest.importorskip("cryptography")
KEY = bytes(range(32))
OTHER = bytes(range(1, 33))
FLOAT = DType.named("float")
GRAPH = Graph(
    [
        Node("x", "Placeholder", attrs={"dtype": FLOAT, "shape": Shape((1, 64))}),
        const("w", np.arange(64 * 64, dtype=np.float32).reshape(64, 64)),
        Node("y", "MatMul", ["x", "w"], {"T": FLOAT, "transpose_a": False, "transpose_b": False}),
    ]
)


@pytest.fixture
def model(tmp_path: pathlib.Path) -> pathlib.Path:
    formats.save(GRAPH, tmp_path / "model.pb")
    sealed.seal(tmp_path / "model.pb", tmp_path / "model.sealed", KEY)
    return tmp_path / "model.sealed"


@pytest.mark.parametrize("size", [0, 1, sealed.CHUNK - 1, sealed.CHUNK, sealed.CHUNK + 1, 3 * sealed.CHUNK])
def test_it_comes_back(tmp_path: pathlib.Path, size: int) -> None:
    content = os.urandom(size)
    (tmp_path / "in").write_bytes(content)
    sealed.seal(tmp_path / "in", tmp_path / "out", KEY)
    assert content[:64] not in (tmp_path / "out").read_bytes() or size == 0 or size < 8
    sealed.unseal(tmp_path / "out", tmp_path / "back", KEY)
    assert (tmp_path / "back").read_bytes() == content


def test_equal_files_are_sealed_differently(tmp_path: pathlib.Path, model: pathlib.Path) -> None:
    sealed.seal(tmp_path / "model.pb", tmp_path / "second", KEY)
    assert (tmp_path / "second").read_bytes()[sealed.HEADER.size :] != model.read_bytes()[sealed.HEADER.size :]


def test_every_way_to_give_a_key(model: pathlib.Path, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "raw").write_bytes(KEY)
    (tmp_path / "hex").write_text(KEY.hex() + "\n")
    monkeypatch.setenv("MODEL_KEY", KEY.hex())
    ways: list[Any] = [KEY, KEY.hex(), tmp_path / "raw", f"file:{tmp_path}/hex", "env:MODEL_KEY", lambda: KEY, KEY.hex]
    for key in ways:
        assert list(pocketgraph.load(model, key=key).nodes) == ["x", "w", "y"]


def test_a_wrong_key_tampering_and_other_files_are_told_apart(model: pathlib.Path, tmp_path: pathlib.Path) -> None:
    with pytest.raises(FormatError, match="the key is not the one that the file was sealed with"):
        pocketgraph.load(model, key=OTHER)
    with pytest.raises(FormatError, match="this is not a sealed file; it needs no key"):
        pocketgraph.load(tmp_path / "model.pb", key=KEY)
    with pytest.raises(UsageError, match="this is a sealed file, and no key was given"):
        pocketgraph.load(model)
    damaged = bytearray(model.read_bytes())
    damaged[-40] ^= 1
    model.write_bytes(damaged)
    with pytest.raises(FormatError, match="was changed after it was sealed"):
        pocketgraph.load(model, key=KEY)


def test_every_byte_counts(tmp_path: pathlib.Path) -> None:
    (tmp_path / "in").write_bytes(b"weights" * 4)
    sealed.seal(tmp_path / "in", tmp_path / "out", KEY)
    content = (tmp_path / "out").read_bytes()
    for position in range(len(content)):
        damaged = bytearray(content)
        damaged[position] ^= 0x10
        with pytest.raises(FormatError):
            sealed.opened(bytes(damaged), KEY, "f")
        with pytest.raises(FormatError):
            sealed.opened(content[:position], KEY, "f")
    with pytest.raises(FormatError, match="longer than it was"):
        sealed.opened(content + b"x", KEY, "f")


def test_chunks_cannot_be_moved_dropped_or_taken_from_another_file() -> None:
    content = os.urandom(3 * sealed.CHUNK)
    whole = b"".join(sealed.sealed_chunks(content, KEY))
    head, step = sealed.HEADER.size, sealed.CHUNK + sealed.TAG
    first, second, third = (whole[head + i * step : head + (i + 1) * step] for i in range(3))
    other = b"".join(sealed.sealed_chunks(content, KEY))
    fewer = bytearray(whole[:head])
    struct.pack_into("<Q", fewer, 12, 2 * sealed.CHUNK)
    for forged in (
        whole[:head] + second + first + third,
        other[:head] + first + second + third,
        whole[: head + step] + other[head + step :],
        bytes(fewer) + first + second,
    ):
        with pytest.raises(FormatError, match="was changed after it was sealed"):
            sealed.opened(forged, KEY, "f")


def test_a_header_cannot_ask_for_memory(model: pathlib.Path) -> None:
    damaged = bytearray(model.read_bytes())
    struct.pack_into("<Q", damaged, 12, 1 << 62)
    with pytest.raises(FormatError, match="cut short"):
        sealed.opened(bytes(damaged), KEY, "f")


@pytest.mark.parametrize("key", [b"short", "zz", "file:/nowhere/key", "env:NOT_SET_ANYWHERE", lambda: b"x", 5])
def test_what_is_no_key(model: pathlib.Path, key: Any) -> None:
    with pytest.raises(UsageError) as caught:
        pocketgraph.load(model, key=key)
    assert "zz" not in str(caught.value)


def test_a_routine_of_ones_own(tmp_path: pathlib.Path) -> None:
    formats.save(GRAPH, tmp_path / "model.pb")
    hidden = tmp_path / "model.xor"
    hidden.write_bytes(bytes(byte ^ 0x5A for byte in (tmp_path / "model.pb").read_bytes()))
    graph = pocketgraph.load(hidden, decrypt=lambda data: bytes(byte ^ 0x5A for byte in data))
    assert list(graph.nodes) == ["x", "w", "y"]
    with pytest.raises(UsageError, match="gave a str, not bytes"):
        pocketgraph.load(hidden, decrypt=lambda data: "no")  # type: ignore[arg-type,return-value]
    with pytest.raises(UsageError, match="not both"):
        pocketgraph.load(hidden, key=KEY, decrypt=bytes)


def test_nothing_of_it_reaches_the_disk(
    model: pathlib.Path, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not by loading, transforming or running, with a cache directory and a temporary one at hand."""
    cache, temporary = tmp_path / "cache", tmp_path / "temporary"
    cache.mkdir()
    temporary.mkdir()
    monkeypatch.setenv("TMPDIR", str(temporary))
    monkeypatch.setattr("tempfile.tempdir", None)
    graph = pocketgraph.load(model, key=KEY)
    assert graph.secret
    assert pocketgraph.transform(graph, "strip_unused_nodes", inputs=["x"], outputs=["y"]).secret
    with pocketgraph.Session(graph, cache_dir=cache) as session:
        [y] = session.run(["y:0"], {"x:0": np.ones((1, 64), np.float32)})
    np.testing.assert_allclose(y[0], np.arange(64 * 64).reshape(64, 64).sum(0), rtol=1e-5)
    assert not list(temporary.rglob("*"))
    assert not [path for path in cache.rglob("*") if path.stat().st_size > 4096]


def test_other_kinds_of_file(tmp_path: pathlib.Path) -> None:
    for form in ("text", "memmapped"):
        formats.save(GRAPH, tmp_path / form, form=form)
        sealed.seal(tmp_path / form, tmp_path / f"{form}.sealed", KEY)
        graph = pocketgraph.load(tmp_path / f"{form}.sealed", key=KEY)
        assert graph["w"].tensor.numpy()[1, 1] == 65


def test_without_the_package(model: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def missing(name: str, *rest: Any, **more: Any) -> Any:
        if name.startswith("cryptography"):
            raise ImportError(name)
        return real(name, *rest, **more)

    monkeypatch.setattr(builtins, "__import__", missing)
    with pytest.raises(MissingExtraError, match=r"pip install 'pocketgraph\[sealed\]'"):
        pocketgraph.load(model, key=KEY)


def test_sealing_twice(model: pathlib.Path, tmp_path: pathlib.Path) -> None:
    with pytest.raises(UsageError, match="sealed already"):
        sealed.seal(model, tmp_path / "twice", KEY)


def test_the_model_is_not_replaced_by_its_sealed_copy(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "model.pb"
    formats.save(GRAPH, path)
    content = path.read_bytes()
    (tmp_path / "link.pb").symlink_to(path)
    for target in (path, f"{tmp_path}/./model.pb", tmp_path / "link.pb"):
        with pytest.raises(UsageError, match="is the model itself, which would be lost"):
            sealed.seal(path, target, KEY)
    assert path.read_bytes() == content


@pytest.mark.parametrize("given", ["no key", f"env:{sealed.KEY_VARIABLE}"])
def test_a_variable_that_holds_no_key_is_named(
    model: pathlib.Path, monkeypatch: pytest.MonkeyPatch, given: str
) -> None:
    monkeypatch.setenv(sealed.KEY_VARIABLE, given)
    with pytest.raises(UsageError, match=f"the environment variable {sealed.KEY_VARIABLE} is not a key"):
        pocketgraph.load(model)
    monkeypatch.setenv(sealed.KEY_VARIABLE, KEY.hex())
    assert len(pocketgraph.load(model)) == len(GRAPH)


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16"])
def test_a_key_file_of_windows_is_read(model: pathlib.Path, tmp_path: pathlib.Path, encoding: str) -> None:
    (tmp_path / "key.txt").write_text(f"{KEY.hex()}\r\n", encoding=encoding)
    assert len(pocketgraph.load(model, key=tmp_path / "key.txt")) == len(GRAPH)


def test_what_leaves_weights_readable_is_not_sealed(tmp_path: pathlib.Path) -> None:
    described = ROOT / "tests" / "fixtures" / "tensorflow_js" / "model.json"
    with pytest.raises(UsageError, match=r"beside this file and would stay readable; pocketgraph convert .* frozen.pb"):
        sealed.seal(described, tmp_path / "out", KEY)
    assert not (tmp_path / "out").exists()


def test_a_directory_is_not_sealed(tmp_path: pathlib.Path) -> None:
    with pytest.raises(UsageError, match=r"this is a directory; a file is sealed; pocketgraph freeze_graph makes one"):
        sealed.seal(tmp_path, tmp_path / "out", KEY)
