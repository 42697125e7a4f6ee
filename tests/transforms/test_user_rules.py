"""Rules from a file and from installed packages."""

from __future__ import annotations

import pathlib
from collections.abc import Iterator

import pytest

from pocketgraph.errors import TransformError, UsageError
from pocketgraph.graph import Graph
from pocketgraph.graph.text_format import parse
from pocketgraph.transforms import rule_files, tool, transform

FILE = '''
"""Rules of mine."""
from __future__ import annotations
from pocketgraph.graph import Graph
from pocketgraph.transforms.tool import transform

@transform
def my_prefix(graph: Graph, *, prefix: str = "p/") -> Graph:
    """Puts a prefix on devices."""
    return graph.map_nodes(lambda node: node.replace(device=prefix + node.device))
'''


@pytest.fixture(autouse=True)
def _only_here() -> Iterator[None]:
    before = set(tool.loaded())
    yield
    for module in {rule.function.__module__ for name, rule in tool.loaded().items() if name not in before}:
        if not module.startswith("pocketgraph."):
            tool.forget(module)


def written(folder: pathlib.Path, text: str) -> pathlib.Path:
    path = folder / "my_rules.py"
    path.write_text(text)
    return path


def test_rules_of_a_file(tmp_path: pathlib.Path) -> None:
    assert rule_files.load_file(written(tmp_path, FILE)) == ["my_prefix"]
    assert "my_prefix" in tool.names()
    graph = transform(parse("x = Placeholder(dtype=float)"), "my_prefix(prefix=q)")
    assert graph["x"].device == "q"
    with pytest.raises(UsageError, match="unknown parameter 'suffix'"):
        transform(graph, "my_prefix(suffix=q)")


def test_without_asking_nothing_is_run(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written(tmp_path, FILE)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError, match="'my_prefix' not recognized"):
        transform(Graph(), "my_prefix")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("import nonsense_module", "the file does not run: ModuleNotFoundError"),
        ("def f(:", "the file does not run: SyntaxError"),
        ("x = 1", "the file defines no rule"),
        (FILE.replace("my_prefix", "fold_constants"), "there is a rule 'fold_constants' already"),
        (FILE.replace("my_prefix", "remove_device"), "there is a rule 'remove_device' already"),
        (FILE.replace('prefix: str = "p/"', "prefix: list[bytes]"), "the rule 'my_prefix' cannot be used"),
    ],
)
def test_files_that_are_refused(tmp_path: pathlib.Path, text: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        rule_files.load_file(written(tmp_path, text))
    assert "my_prefix" not in tool.names()
    graph = parse('x = Placeholder(dtype=float) @"/gpu:0"')
    assert transform(graph, "remove_device")["x"].device == ""


def test_a_missing_file() -> None:
    with pytest.raises(UsageError, match=r"no_such\.py: there is no such file"):
        rule_files.load_file("no_such.py")


def test_rules_of_a_package(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "their_package.py").write_text(FILE)
    info = tmp_path / "their_package-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: their-package\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        "[pocketgraph.transforms]\nmy_prefix = their_package:my_prefix\nlost = their_package:lost\n"
        "remove_device = their_package:my_prefix\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    assert "my_prefix" in tool.names()
    graph = parse('x = Placeholder(dtype=float) @"/gpu:0"')
    assert transform(graph, "my_prefix")["x"].device == "p//gpu:0"
    assert transform(graph, "remove_device")["x"].device == ""  # a package cannot take the place of a rule
    with pytest.raises(UsageError, match=r"the rule 'lost' \(their_package:lost\) does not load"):
        transform(graph, "lost")


BROKEN = """
from pocketgraph.graph import Graph
from pocketgraph.transforms.tool import transform

@transform
def divides(graph: Graph) -> Graph:
    '''Fails.'''
    return graph if 1 / 0 else graph

@transform
def forgets(graph: Graph) -> Graph:
    '''Gives nothing.'''
"""


@pytest.mark.parametrize(
    ("rule", "said"),
    [
        (
            "divides",
            r"divides: the rule failed: ZeroDivisionError: division by zero \(broken.py, line [0-9]+\); POCKETGRAPH_",
        ),
        ("forgets", "forgets: the rule gave NoneType, not a Graph; end it with return graph"),
    ],
)
def test_a_rule_that_fails_is_an_error_in_one_line(rule: str, said: str, tmp_path: pathlib.Path) -> None:
    path = tmp_path / "broken.py"
    path.write_text(BROKEN)
    graph = parse("x = Placeholder(dtype=float)")
    rule_files.load_file(path)
    with pytest.raises(TransformError, match=said):
        transform(graph, rule)
    assert transform(graph, f"{rule}(ignore_errors=true)") == graph
