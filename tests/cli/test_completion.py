"""Tab completion: commands, options, names of a model and of tables, and files where other free text is asked for."""

from __future__ import annotations

import gzip
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

import pytest

from command_line import call
from pocketgraph.cli import completion
from pocketgraph.cli.shared.guides import guides, packed
from pocketgraph.formats import save
from pocketgraph.graph.text_format import parse
from support import ROOT


@pytest.fixture
def model(tmp_path: pathlib.Path) -> pathlib.Path:
    graph = parse("""
        image = Placeholder(dtype=float, shape=[2])
        inner/one = Relu(image, T=float)
        softmax = Tanh(inner/one, T=float)
    """)
    save(graph, tmp_path / "model.pb")
    return tmp_path / "model.pb"


def offered(words: str, shell: str = "bash") -> list[str]:
    environment = {
        **os.environ,
        "_POCKETGRAPH_COMPLETE": f"{shell}_complete",
        "COMP_WORDS": words,
        "COMP_CWORD": words.split(" ")[-1] if shell == "fish" else str(len(words.split()) - 1),
    }
    program = "import sys; sys.argv = ['pocketgraph']; from pocketgraph.cli.main import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, encoding="utf-8", check=True
    )
    assert not done.stderr
    return done.stdout.split()


@pytest.mark.parametrize(
    ("typed", "offered_then"),
    [
        ("fre", ["plain,freeze_graph"]),
        ("summarize --js", ["plain,--json"]),
        ("summarize mod", ["file,mod"]),
        ("freeze_graph -o out", ["file,out"]),
        ("transform_graph --compat fi", ["plain,fixed"]),
        ("app and", ["plain,android"]),
        ("fit --device pixel-3,hik", ["plain,pixel-3,hikey-960"]),
    ],
)
def test_what_is_offered(typed: str, offered_then: list[str]) -> None:
    assert offered(f"pocketgraph {typed}") == offered_then


@pytest.mark.parametrize(
    ("typed", "offered_then"),
    [
        ("plan MODEL --outputs so", ["plain,softmax"]),
        ("plan MODEL --outputs = so", ["plain,softmax"]),
        ("label_image MODEL --output_layer = so", ["plain,softmax"]),  # the model is one of its pictures
        ("label_image --graph = MODEL --output_layer = so", ["plain,softmax"]),
        ("transform_graph --in_graph = MODEL --out_graph = o.pb --outputs = so", ["plain,softmax"]),
        ("benchmark_model --graph MODEL --output_layer inner/one,so", ["plain,inner/one,softmax"]),
        ("evaluate MODEL --outputs i", ["plain,image", "plain,inner/one"]),
        ("evaluate MODEL --preset mobilenet_v", ["plain,mobilenet_v2"]),
        ("transform_graph MODEL -t fold_o", ["plain,fold_old_batch_norms"]),
        ("transform_graph MODEL -t remove_nodes(op=Re", ["plain,remove_nodes(op=Relu"]),
        ("transforms smal", ["plain,smallest"]),
        ("quantize MODEL --without channel_r", ["plain,channel_replication"]),
        ("help quantiz", ["plain,quantization", "plain,quantize"]),
        ("plan none.pb --outputs so", ["file,so"]),
    ],
)
def test_names_are_offered(typed: str, offered_then: list[str], model: pathlib.Path) -> None:
    assert offered(f"pocketgraph {typed}".replace("MODEL", str(model))) == offered_then


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_a_value_is_offered_with_its_option(shell: str, model: pathlib.Path) -> None:
    """zsh and fish put what is offered in the place of the whole word."""
    told = offered(f"pocketgraph transform_graph --in_graph={model} --outputs=image,soft", shell)
    assert "--outputs=image,softmax" in " ".join(told)
    assert "--mode=weights" in " ".join(offered("pocketgraph quantize --mode=wei", shell))
    assert "=file" not in " ".join(offered("pocketgraph transform_graph --in_graph=mod", shell))


@pytest.mark.skipif(shutil.which("fish") is None, reason="fish is not installed")
def test_fish_completes(model: pathlib.Path, tmp_path: pathlib.Path) -> None:
    script = tmp_path / "pocketgraph.fish"
    script.write_text(completion.script("fish"))
    path = f"{pathlib.Path(sys.executable).parent}:{os.environ['PATH']}"
    for typed, wanted in (
        (f"pocketgraph transform_graph --in_graph={model} --outputs=soft", "--outputs=softmax"),
        (f"pocketgraph transform_graph --in_graph={str(model)[:-3]}", f"--in_graph={model}"),
        (f"pocketgraph summarize {str(model)[:-3]}", str(model)),
        ("pocketgraph summ", "summarize"),
    ):
        found = subprocess.run(
            ["fish", "-N", "-c", f"source {script}; complete -C '{typed}'"], capture_output=True, encoding="utf-8",
            env={**os.environ, "PATH": path, "HOME": str(tmp_path)}, check=True,
        )  # fmt: skip
        assert wanted in [line.partition("\t")[0] for line in found.stdout.splitlines()], (typed, found)


@pytest.mark.skipif(shutil.which("zsh") is None, reason="zsh is not installed")
def test_zsh_needs_no_completion_that_was_set_up_before(tmp_path: pathlib.Path) -> None:
    (tmp_path / "c.zsh").write_text(completion.script("zsh"))
    found = subprocess.run(
        ["zsh", "-f", "-c", f". {tmp_path / 'c.zsh'}; echo $_comps[pocketgraph]"], capture_output=True,
        encoding="utf-8", env={**os.environ, "HOME": str(tmp_path)}, check=True,
    )  # fmt: skip
    assert found.stdout.strip() == "_pocketgraph_completion"
    assert not found.stderr


def test_it_is_installed_once(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("SHELL", "/bin/bash")
    for name in ("XDG_DATA_HOME", "XDG_CONFIG_HOME", "ZDOTDIR"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / ".bashrc").write_text("alias ll=ls")
    for shell in ([], ["bash"], ["zsh"], ["fish"]):
        assert call("completion", "install", *shell) == 0
    first, second = (tmp_path / ".bashrc").read_text().splitlines()
    place = tmp_path / ".local" / "share" / "pocketgraph" / "completion.bash"
    assert (first, second.split('"')[1]) == ("alias ll=ls", str(place))
    assert (tmp_path / ".zshrc").read_text().count("completion.zsh") == 1
    assert "complete" in (tmp_path / ".config" / "fish" / "completions" / "pocketgraph.fish").read_text()
    bash = shutil.which("bash")
    if bash is None:
        pytest.skip("there is no bash here to read the script")
    said = subprocess.run([bash, "-c", f". '{tmp_path}/.bashrc'; complete -p pocketgraph"], capture_output=True)
    assert b"_pocketgraph_completion" in said.stdout


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_what_was_installed_is_taken_away(
    shell: str, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("XDG_DATA_HOME", "XDG_CONFIG_HOME", "ZDOTDIR"):
        monkeypatch.delenv(name, raising=False)
    for name in (".bashrc", ".zshrc"):
        (tmp_path / name).write_bytes(b"alias ll=ls  # \xfc\n")
    assert call("completion", "install", shell) == 0
    assert [path for path in tmp_path.rglob("*") if path.is_file() and "pocketgraph" in str(path.relative_to(tmp_path))]
    assert call("completion", "uninstall", shell) == 0
    left = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert sorted(path.name for path in left) == [".bashrc", ".zshrc"]
    assert [path.read_bytes() for path in left] == [b"alias ll=ls  # \xfc\n"] * 2
    capsys.readouterr()
    assert call("completion", "uninstall", shell) == 0
    assert capsys.readouterr().out == f"nothing is installed for {shell}\n"


@pytest.mark.parametrize("shell", ["bash", "zsh"])
def test_a_start_up_file_that_was_made_goes_and_a_link_stays_one(
    shell: str, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("XDG_DATA_HOME", "XDG_CONFIG_HOME", "ZDOTDIR"):
        monkeypatch.delenv(name, raising=False)
    started = tmp_path / f".{shell}rc"
    assert call("completion", "install", shell) == 0
    assert call("completion", "install", shell) == 0
    assert started.read_text().count("\n") == 1
    started.write_text(started.read_text() + "alias ll=ls\n")
    assert call("completion", "uninstall", shell) == 0
    assert started.read_text() == "alias ll=ls\n"
    started.unlink()
    assert call("completion", "install", shell) == 0
    assert call("completion", "uninstall", shell) == 0
    assert not started.exists()
    (tmp_path / "dotfiles").write_text("")  # the user's own stays, also empty
    started.symlink_to(tmp_path / "dotfiles")
    assert call("completion", "install", shell) == 0
    assert started.is_symlink()
    assert "pocketgraph" in (tmp_path / "dotfiles").read_text()
    assert call("completion", "uninstall", shell) == 0
    assert started.is_symlink()
    assert (tmp_path / "dotfiles").read_text() == ""


def test_an_unknown_shell_is_asked_for(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("SHELL", "/bin/tcsh")
    assert call("completion", "install") == 2
    assert "pocketgraph completion install bash" in capsys.readouterr().err
    assert call("completion", "uninstall") == 2
    assert "pocketgraph completion uninstall bash" in capsys.readouterr().err


def test_it_is_installed_beside_letters_of_another_encoding(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_DATA_HOME", raising=False)
    (tmp_path / ".bashrc").write_bytes(b"export A=\xe4")
    assert call("completion", "install", "bash") == 0
    assert (tmp_path / ".bashrc").read_bytes().startswith(b'export A=\xe4\n. "')


def test_a_home_that_nothing_can_be_written_to_is_said(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(pathlib.Path, "home", lambda: tmp_path)
    monkeypatch.delenv("XDG_DATA_HOME", raising=False)
    monkeypatch.setattr(os, "access", lambda *_: False)
    assert call("completion", "install", "bash") == 1
    assert f"nothing can be written to {tmp_path}" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_installed_guides_are_those_of_a_checkout() -> None:
    documents = json.loads(gzip.decompress(packed(ROOT / "docs")))
    assert documents == {**guides(), "index": (ROOT / "docs" / "index.md").read_text("utf-8")}


def test_guides_are_shown(capsys: pytest.CaptureFixture[str]) -> None:
    assert call("help") == 0
    listed = capsys.readouterr().out
    assert set(re.findall(r"^  ([\w-]+)  ", listed, re.MULTILINE)) == set(guides())  # the index forgets none
    places = [listed.index(f"\n  {name} ") for name in ("tutorial", "seeing", "freezing", "quantization", "shipping")]
    assert places == sorted(places)
    assert call("help", "freezing") == 0
    assert capsys.readouterr().out.startswith("# Freeze a model")
    assert call("help", "label-image") == 0
    assert "Usage: pocketgraph label_image" in capsys.readouterr().out
    assert call("help", "freezin") == 2
    assert "did you mean 'freezing'" in capsys.readouterr().err
