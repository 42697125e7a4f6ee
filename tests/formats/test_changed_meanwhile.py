"""Files that are written anew, or cut, after they were opened: what was opened, or an error that says what happened."""

from __future__ import annotations

import os
import pathlib
import shutil
import subprocess
import sys

import numpy as np
import pytest

from pocketgraph import formats
from pocketgraph.errors import FormatError
from pocketgraph.formats.checkpoints import checkpoint_v2
from pocketgraph.formats.checkpoints.checkpoint_writer import write_checkpoint
from pocketgraph.graph import Graph, Tensor, const

COUNT = 6
WIDE = 1 << 17  # elements


def tensors(number: int, size: int = 100) -> dict[str, Tensor]:
    return {f"w{index}": Tensor.from_numpy(np.full(size, number, np.float32)) for index in range(COUNT)}


def graph(number: int) -> Graph:
    return Graph([const(f"w{index}", np.full(WIDE, number, np.float32)) for index in range(3)], outputs=["w0"])


@pytest.mark.parametrize(("before", "after"), [(1, 1), (3, 3), (1, 3), (3, 1)])
@pytest.mark.parametrize("size", [100, WIDE])
def test_an_open_checkpoint_stays_the_one_that_was_opened(
    before: int, after: int, size: int, tmp_path: pathlib.Path
) -> None:
    prefix = tmp_path / "model.ckpt"
    write_checkpoint(prefix, tensors(1, size), before)
    opened = formats.open_checkpoint(prefix)
    assert opened["w0"].numpy()[0] == 1
    write_checkpoint(prefix, tensors(2, size), after)
    assert {float(opened[name].numpy()[0]) for name in opened} == {1.0}
    assert {float(tensor.numpy()[0]) for tensor in formats.open_checkpoint(prefix).values()} == {2.0}


@pytest.mark.parametrize(("before", "after"), [(3, 3), (3, 1), (3, 4)])
def test_data_files_that_were_not_mapped_in_time_are_an_error(
    before: int, after: int, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checkpoint_v2, "MAPPED_AT_ONCE", 1)
    prefix = tmp_path / "model.ckpt"
    write_checkpoint(prefix, tensors(1), before)
    opened = formats.open_checkpoint(prefix)
    write_checkpoint(prefix, tensors(2), after)
    found, refused = set(), 0
    for name in opened:
        try:
            found.update(opened[name].numpy().tolist())
        except FormatError as error:
            assert "was written anew since it was opened; open it again" in str(error)  # noqa: PT017
            refused += 1
    assert found == {1.0}
    assert refused == 4


def test_a_checkpoint_changed_in_place_by_its_writer_is_an_error(tmp_path: pathlib.Path) -> None:
    """TensorFlow gives data files their names before it writes the index that fits them."""
    write_checkpoint(tmp_path / "old", tensors(1))
    write_checkpoint(tmp_path / "new", tensors(2))
    shutil.copy(tmp_path / "new.data-00000-of-00001", tmp_path / "old.data-00000-of-00001")
    opened = formats.open_checkpoint(tmp_path / "old")
    with pytest.raises(FormatError, match="the file is damaged"):
        opened["w0"].numpy()
    shutil.copy(tmp_path / "new.index", tmp_path / "old.index")
    with pytest.raises(FormatError, match="written anew since it was opened"):
        opened["w1"].numpy()


def test_readers_beside_a_writer_see_one_checkpoint_or_say_so(tmp_path: pathlib.Path) -> None:
    prefix = tmp_path / "model.ckpt"
    write_checkpoint(prefix, tensors(0))
    program = (
        "import sys; sys.path[:0] = [sys.argv[2]]\n"
        "from formats.test_changed_meanwhile import tensors, write_checkpoint\n"
        "for number in range(1, 150): write_checkpoint(sys.argv[1], tensors(number), 1 + number % 3)"
    )
    tests = str(pathlib.Path(__file__).parents[1])
    with subprocess.Popen([sys.executable, "-c", program, str(prefix), tests]) as writer:
        seen = set()
        while writer.poll() is None:
            try:
                opened = formats.open_checkpoint(prefix)
                (number,) = {float(value) for name in opened for value in opened[name].numpy()}
                seen.add(number)
            except FormatError as error:
                assert "again" in str(error)  # noqa: PT017
    assert writer.returncode == 0
    assert len(seen) > 1


def cut(path: pathlib.Path, size: int) -> None:
    with open(path, "r+b") as file:
        file.truncate(size)


@pytest.mark.skipif(os.name != "posix", reason="mapped files cannot be cut")
@pytest.mark.parametrize("form", ["graphdef", "memmapped", "meta", "saved_model"])
def test_a_mapped_model_that_is_cut_is_an_error(form: str, tmp_path: pathlib.Path) -> None:
    path = tmp_path / "model"
    formats.save(graph(1), path, form=form)
    opened = formats.load(path)
    cut(path / "saved_model.pb" if form == "saved_model" else path, 5000)
    with pytest.raises(FormatError, match="has become shorter since it was opened: 5,000 bytes are left of"):
        for node in opened:
            value = node.attr("value")
            assert isinstance(value, Tensor)
            value.numpy()
    with pytest.raises(FormatError, match="has become shorter"):
        formats.save(opened, tmp_path / "other.pb")
    assert not [name for name in os.listdir(tmp_path) if name.startswith("other")]


@pytest.mark.skipif(os.name != "posix", reason="mapped files cannot be cut")
@pytest.mark.parametrize("size", [100, WIDE])
def test_a_mapped_checkpoint_that_is_cut_is_an_error(size: int, tmp_path: pathlib.Path) -> None:
    prefix = tmp_path / "model.ckpt"
    write_checkpoint(prefix, tensors(1, size))
    opened = formats.open_checkpoint(prefix)
    cut(tmp_path / "model.ckpt.data-00000-of-00001", 10)
    with pytest.raises(FormatError, match="has become shorter"):
        opened["w0"].numpy()
