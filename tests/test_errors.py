"""Hints for names that are not there, the nearest ones in small pools and in large ones; how messages name options."""

import ast
import re

import click
import pytest
from click.testing import CliRunner

from pocketgraph.errors import COMPARED, FormatError, did_you_mean, nearest, option, quoted
from support import ROOT

LARGE = [f"tower_{n % 7}/block{n // 100}/unit_{n % 100}/BatchNorm/FusedBatchNorm_{n}" for n in range(5 * COMPARED)]


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        (LARGE[4321].replace("Fused", "Fsed"), LARGE[4321]),
        (LARGE[17].upper(), LARGE[17]),
        ("import/" + LARGE[4000], LARGE[4000]),
        (LARGE[2500].removeprefix("tower_1/"), LARGE[2500]),
    ],
)
def test_the_name_that_was_meant_is_first_of_thousands(name: str, meant: str) -> None:
    assert nearest(name, LARGE)[0] == meant


@pytest.mark.parametrize(
    ("word", "posix", "windows"),
    [
        ("net.pb", "net.pb", "net.pb"),
        (r"C:\out\net.pb", r"'C:\out\net.pb'", r"C:\out\net.pb"),
        ("my photos", "'my photos'", '"my photos"'),
        ("a&b;c", "'a&b;c'", '"a&b;c"'),
        ("", "''", '""'),
    ],
)
def test_words_of_printed_commands_are_quoted_as_the_shell_takes_them(word: str, posix: str, windows: str) -> None:
    """cmd.exe takes single quotes for part of a name."""
    assert (quoted(word, "posix"), quoted(word, "nt")) == (posix, windows)


def test_an_error_is_one_line_whatever_names_are_in_it() -> None:
    error = FormatError("there is no 'a\nb\x1b[2J'", where="x\r\ny", hint="rename\nit")
    assert str(error) == r"x\r\ny: there is no 'a\nb\x1b[2J'; rename\nit"
    assert (error.what, error.where, error.hint) == (r"there is no 'a\nb\x1b[2J'", r"x\r\ny", r"rename\nit")


def test_a_part_of_a_name_is_found() -> None:
    assert nearest("softmax", [*LARGE, "head/predictions/softmax_v2"]) == ["head/predictions/softmax_v2"]


def test_nothing_near_is_no_hint() -> None:
    assert did_you_mean("xyzzy", ["image", "labels"]) == ""
    assert did_you_mean("", []) == ""


def test_an_option_is_a_flag_only_while_a_command_runs() -> None:
    @click.command()
    def command() -> None:
        click.echo(f"{option('feed', 'feeds')} {option('max-kl')}")

    assert (option("feed", "feeds"), option("max-kl"), option("outputs")) == ("feeds", "max_kl", "outputs")
    import pocketgraph.cli  # noqa: F401

    assert CliRunner().invoke(command).output == "--feed --max-kl\n"
    assert option("feed", "feeds") == "feeds"


SHELL = ("pocketgraph ", "transform_graph", "freeze_graph ", "pip install ", "main.py --", "ray start", "rpicam-hello ")
"""Whole commands to type."""
ELSEWHERE = (
    "cli/", "apps/shipping/ship.py", "apps/retraining/retraining_page.py", "inspect/identify.py",
    "inspect/peer_worker.py", "inspect/summarize.py", "formats/sealed.py",
)  # fmt: skip
"""The command line, and what is proposed to type next; a program of its own;
what the original printed; all ways to name a key."""


def test_lower_floors_name_options_and_not_flags() -> None:
    found = []
    source = ROOT / "src" / "pocketgraph"
    for path in source.rglob("*.py"):
        name = path.relative_to(source).as_posix()
        if name.startswith(ELSEWHERE):
            continue
        tree = ast.parse(path.read_text("utf-8"))
        documents = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
        for node in ast.walk(tree):
            if not isinstance(node, ast.Constant) or not isinstance(node.value, str) or id(node) in documents:
                continue
            if re.search(r"(^|[\s(`'])--([a-z]|$)", node.value) and not any(text in node.value for text in SHELL):
                found.append(f"{name}:{node.lineno} {node.value!r}")
    assert found == []
