"""Every kind of file cut at 20 places and with 20 flipped bytes: an error of ours or what was there, in little memory.

Where a checksum exists, a changed value is never given.
"""

from __future__ import annotations

import contextlib
import pathlib
import random
import resource
import shutil
from collections.abc import Callable

import numpy as np
import pytest

import pocketgraph
from pocketgraph import formats
from pocketgraph.errors import PocketgraphError
from pocketgraph.formats import sealed
from pocketgraph.formats.checkpoints.checkpoint_writer import write_checkpoint
from pocketgraph.formats.graphdef_text import print_message
from pocketgraph.formats.model_file_facts import facts
from pocketgraph.graph import DType, Graph, Node, Shape, Tensor, const
from support import lines_taken

FLOAT = DType.named("float")
KEY = bytes(32)
ROUNDS = 20
MOST_MEMORY = 300 << 10  # KiB that the process may grow by
MOST_LINES = 100_000  # of Python, for a file of some kilobytes
TEXT_FORMS = {
    "meta_text": ("meta", "MetaGraphDef", "model.meta"),
    "saved_model_text": ("saved_model", "SavedModel", "saved_model.pbtxt"),
}
FIXTURES = pathlib.Path(__file__).parent.parent / "fixtures"
GRAPH = Graph(
    [
        Node("x", "Placeholder", attrs={"dtype": FLOAT, "shape": Shape((1, 16))}),
        const("w", np.arange(16 * 8, dtype=np.float32).reshape(16, 8)),
        const("words", np.array([b"a", b"bc"], object)),
        Node("y", "MatMul", ["x", "w"], {"T": FLOAT, "transpose_a": False, "transpose_b": False}),
    ],
    outputs=["y"],
)


@pytest.mark.parametrize("suffix", ["pb", "tflite", "onnx"])
def test_a_model_that_is_cut_short_is_to_be_copied_again(suffix: str, tmp_path: pathlib.Path) -> None:
    path = tmp_path / f"model.{suffix}"
    if suffix == "pb":
        formats.save(GRAPH, path)
    else:
        if suffix == "onnx":
            pytest.importorskip("onnx", reason="the extra 'onnx' is not installed")
        pocketgraph.export(GRAPH, path)
    path.write_bytes(path.read_bytes()[:-200])
    with pytest.raises(PocketgraphError, match="copy, download or write it again"):
        formats.load(path)


def tensors(path: pathlib.Path) -> dict[str, Tensor]:
    return dict(formats.open_checkpoint(path))


def constants(graph: Graph) -> dict[str, Tensor]:
    found = {}
    for node in graph:
        _ = node.attrs
        if node.op == "Const" and isinstance(value := node.attr("value"), Tensor):
            found[node.name] = value
    return found


def of_file(path: pathlib.Path) -> dict[str, Tensor]:
    return constants(formats.load(path))


def of_functions(path: pathlib.Path) -> dict[str, Tensor]:
    """The constants of the graph and of every function in it."""
    graph = formats.load(path)
    found = constants(graph)
    for function in graph.functions.values():
        for node in function.nodes:
            if isinstance(value := node.attr("value"), Tensor):
                found[f"{function.name}/{node.name}"] = value
    return found


def of_freezing(path: pathlib.Path) -> dict[str, Tensor]:
    return constants(pocketgraph.freeze(path))


def of_sealed(path: pathlib.Path) -> dict[str, Tensor]:
    return constants(formats.load(path, key=KEY))


def make(
    folder: pathlib.Path, kind: str
) -> tuple[pathlib.Path, pathlib.Path, Callable[[pathlib.Path], dict[str, Tensor]], bool]:
    """What to damage, what to open, how, and whether checksums find every change of a value."""
    path = folder / f"model.{kind}"
    if kind in ("graphdef", "text", "memmapped", "meta"):
        formats.save(GRAPH, path, form=kind)
        return path, path, of_file, False
    if kind in TEXT_FORMS:
        form, message, name = TEXT_FORMS[kind]
        formats.save(GRAPH, folder / "binary", form=form)
        encoded = folder / "binary" / "saved_model.pb" if form == "saved_model" else folder / "binary"
        path = folder / name
        path.write_text(print_message(encoded.read_bytes(), f"tensorflow.{message}"))
        return path, path.parent if form == "saved_model" else path, of_file, False
    if kind == "library":
        shutil.copytree(FIXTURES / "saved_models" / "nested", folder / "m")
        return folder / "m" / "saved_model.pb", folder / "m", of_functions, False
    if kind == "tf2_index":
        shutil.copytree(FIXTURES / "saved_models" / "nested", folder / "m")
        return folder / "m" / "variables" / "variables.index", folder / "m", of_freezing, True
    if kind == "state":
        for file in (FIXTURES / "checkpoints").glob("types.*"):
            shutil.copy(file, folder)
        (folder / "checkpoint").write_text('model_checkpoint_path: "types"\nall_model_checkpoint_paths: "types"\n')
        return folder / "checkpoint", folder / "checkpoint", tensors, True
    if kind == "v1_shard":
        for file in (FIXTURES / "checkpoints" / "v1").glob("sharded*"):
            shutil.copy(file, folder)
        return folder / "sharded.ckpt-00001-of-00002", folder / "sharded.ckpt", tensors, True
    if kind == "saved_model":
        formats.save(GRAPH, path, form=kind)
        return path / "saved_model.pb", path, of_file, False
    if kind == "sealed":
        pytest.importorskip("cryptography")
        formats.save(GRAPH, folder / "plain")
        sealed.seal(folder / "plain", path, KEY)
        return path, path, of_sealed, True
    if kind.startswith("v2"):
        write_checkpoint(folder / "c", constants(GRAPH))
        for file in (FIXTURES / "checkpoints").glob("types.*"):
            shutil.copy(file, folder)
        target = "types.index" if kind == "v2_index" else "types.data-00000-of-00001"
        return folder / target, folder / "types", tensors, True
    shutil.copy(FIXTURES / "checkpoints" / "v1" / "types.ckpt", path)
    return path, path, tensors, True


@pytest.mark.parametrize(
    "kind",
    [
        "graphdef", "text", "memmapped", "meta", "meta_text", "saved_model", "saved_model_text", "library", "tf2_index",
        "sealed", "state", "v2_index", "v2_data", "v1", "v1_shard",
    ],
)  # fmt: skip
@pytest.mark.filterwarnings("ignore:invalid escape sequence:DeprecationWarning")  # of protobuf, which takes them
def test_damage(kind: str, tmp_path: pathlib.Path) -> None:
    target, opened, read, has_checksums = make(tmp_path, kind)
    content = target.read_bytes()
    whole = {name: value.numpy() for name, value in read(opened).items()}
    assert whole
    rng = random.Random(kind)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    refused = 0

    def read_damaged() -> None:
        nonlocal refused
        with contextlib.suppress(PocketgraphError):
            facts(opened)
        try:
            for name, tensor in read(opened).items():
                values = tensor.numpy()
                if has_checksums:
                    np.testing.assert_array_equal(values, whole[name])
        except PocketgraphError as error:
            assert "\n" not in str(error)  # noqa: PT017
            refused += 1

    for round_ in range(2 * ROUNDS):
        damaged = bytearray(content)
        if round_ < ROUNDS:
            del damaged[rng.randrange(len(damaged)) :]
        else:
            damaged[rng.randrange(len(damaged))] ^= rng.randrange(1, 256)
        target.write_bytes(damaged)
        assert lines_taken(read_damaged) < MOST_LINES
    assert refused >= ROUNDS // 2
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < MOST_MEMORY
