"""The package as a whole: what importing costs, which names it offers, how the command line fails."""

import subprocess
import sys

import pytest

import pocketgraph
from pocketgraph.cli.main import ALIASES, COMMANDS, main

NAMES = ("load", "save", "freeze", "transform", "TransformGraph", "Session", "summarize", "verify")
COUNT = """
import sys, numpy
before = len(sys.modules)
import pocketgraph
print(len(sys.modules) - before)
"""
HELP = """
import sys, numpy
typed = sys.argv[1:]
before = set(sys.modules)
from pocketgraph.cli.main import main
try:
    main([*typed, "--help"])
except SystemExit:
    pass
heavy = {"google.protobuf", "rich", "PIL", "ai_edge_litert", "ml_dtypes", "pocketgraph.runtime", "pocketgraph.formats"}
print("heavy:", sorted(heavy & set(sys.modules)))
"""


def python(code: str, *typed: str) -> str:
    return subprocess.run(
        [sys.executable, "-c", code, *typed], capture_output=True, encoding="utf-8", check=True
    ).stdout


def test_import_loads_few_modules() -> None:
    assert int(python(COUNT)) < 100


@pytest.mark.parametrize("typed", [(), ("app",), ("ship",), ("quantize",), ("fit",), ("export",)])
def test_help_loads_nothing_heavy(typed: tuple[str, ...]) -> None:
    assert python(HELP, *typed).rstrip().endswith("heavy: []")


@pytest.mark.parametrize("name", NAMES)
def test_public_names_are_callable(name: str) -> None:
    assert callable(getattr(pocketgraph, name))
    assert name in dir(pocketgraph)


def test_freeze_stays_a_function_after_its_package_is_imported() -> None:
    import pocketgraph.freezing

    assert callable(pocketgraph.freeze)
    assert callable(pocketgraph.verify)


def test_unknown_attribute() -> None:
    with pytest.raises(AttributeError, match="no attribute 'lode'") as caught:
        pocketgraph.lode  # noqa: B018
    assert (caught.value.name, caught.value.obj) == ("lode", pocketgraph)  # of which Python makes "Did you mean"


@pytest.mark.parametrize("name", [*COMMANDS, *ALIASES])
def test_every_command_has_help(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        main([name.replace("_", "-"), "--help"])
    assert stop.value.code == 0
    assert f"Usage: pocketgraph {ALIASES.get(name, name)}" in capsys.readouterr().out


def failure(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    with pytest.raises(SystemExit) as stop:
        main(arguments)
    error = capsys.readouterr().err
    assert error.count("\n") == 1, error
    assert "Traceback" not in error
    assert isinstance(stop.value.code, int)
    return stop.value.code, error


def test_unknown_command_suggests_a_near_one(capsys: pytest.CaptureFixture[str]) -> None:
    code, error = failure(["freze_graph"], capsys)
    assert code == 2
    assert "freeze_graph" in error


def test_unknown_flag(capsys: pytest.CaptureFixture[str]) -> None:
    code, error = failure(["summarize_graph", "--in_grph=x.pb"], capsys)
    assert code == 2
    assert "--in_grph" in error


def test_missing_file(capsys: pytest.CaptureFixture[str]) -> None:
    code, error = failure(["summarize_graph", "--in_graph=/nowhere/x.pb"], capsys)
    assert code in (1, 2)
    assert "/nowhere/x.pb" in error
