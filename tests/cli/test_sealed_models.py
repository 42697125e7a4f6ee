"""Every command opens sealed models, with a key that is named once."""

from __future__ import annotations

import os
import pathlib

import click
import numpy as np
import pytest

import command_line
from pocketgraph import formats
from pocketgraph.cli.main import COMMANDS, WITHOUT_MODELS, Commands
from pocketgraph.formats import sealed
from pocketgraph.graph import DType, Graph, Node, const

pytest.importorskip("cryptography")
KEY = bytes(range(32))
GRAPH = Graph([const("w", np.arange(40, dtype=np.float32)), Node("y", "Identity", ["w"], {"T": DType.named("float")})])


@pytest.fixture
def model(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> pathlib.Path:
    monkeypatch.delenv(sealed.KEY_VARIABLE, raising=False)
    formats.save(GRAPH, tmp_path / "model.pb")
    sealed.seal(tmp_path / "model.pb", tmp_path / "model.sealed", KEY)
    (tmp_path / "key").write_text(KEY.hex())
    (tmp_path / "other").write_text(KEY[::-1].hex())
    return tmp_path / "model.sealed"


def call(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str]:
    code = command_line.call(*arguments)
    captured = capsys.readouterr()
    return code, captured.out + captured.err


@pytest.mark.parametrize("command", [name for name in COMMANDS if name not in WITHOUT_MODELS])
def test_every_command_takes_a_key(command: str) -> None:
    loaded = Commands().get_command(None, command)  # type: ignore[arg-type]
    assert loaded is not None
    parts = (
        [(f"{command} {name}", part) for name, part in loaded.commands.items()]
        if isinstance(loaded, click.Group)
        else [(command, loaded)]
    )
    for opening in [part for typed, part in parts if typed not in WITHOUT_MODELS]:
        options = [option for parameter in opening.params for option in parameter.opts]
        assert options.count("--key-file") == options.count("--key-env") == 1


def test_a_key_file(model: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, said = call(capsys, "summarize", model, f"--key-file={model.with_name('key')}")
    assert (code, "2 nodes" in " ".join(said.split())) == (0, True)  # it wraps where folders have long names
    assert sealed.KEY_VARIABLE not in os.environ
    code, said = call(capsys, "summarize", model, f"--key-file={model.with_name('other')}")
    assert (code, "the key is not the one" in said) == (1, True)


def test_a_variable_that_an_option_names(
    model: pathlib.Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_KEY", KEY.hex())
    code, said = call(capsys, "summarize_graph", f"--in_graph={model}", "--key-env=MY_KEY")
    assert (code, "1 Const" in said) == (0, True)


@pytest.mark.parametrize("value", [KEY.hex(), "file:key", "env:MY_KEY"])
def test_the_variable_of_all_commands(
    value: str, model: pathlib.Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(model.parent)
    monkeypatch.setenv("MY_KEY", KEY.hex())
    monkeypatch.setenv(sealed.KEY_VARIABLE, value)
    assert call(capsys, "convert", model, "copy.pb")[0] == 0
    assert formats.load("copy.pb")["w"].tensor.numpy()[39] == 39
    assert call(capsys, "unseal", model, "again.pb")[0] == 0
    assert formats.load(model)["w"].tensor.size == 40


def test_no_key(model: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, said = call(capsys, "summarize", model)
    assert (code, "sealed file, and no key was given; give --key-file, or set POCKETGRAPH_KEY" in said) == (2, True)


@pytest.mark.parametrize("arguments", [["nowhere.pb", "out.sealed"], ["model.sealed", "out.sealed"], ["model.pb"]])
def test_a_new_key_is_not_left_behind_when_nothing_was_sealed(
    model: pathlib.Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, arguments: list[str]
) -> None:
    monkeypatch.chdir(model.parent)
    code, said = call(capsys, "seal", *arguments, "--new-key=new")
    assert code != 0
    assert said.startswith("error: ")
    assert said.count("\n") == 1
    assert not model.with_name("new").exists()
    code, said = call(capsys, "seal", "model.pb", "out.sealed", "--new-key=new")
    assert (code, "new: a new key" in said) == (0, True)
    assert len(model.with_name("new").read_text().strip()) == 64
