"""What is kept on disk is named after the code that made it: any change of that code gives another name."""

from __future__ import annotations

import os
import pathlib
import shutil
import subprocess
import sys
from collections.abc import Callable

import pytest

import pocketgraph
from pocketgraph.litert import cache, code_version
from pocketgraph.litert.code_version import ABOVE, BUILT, checkout_version, content_version
from test_floors import house

SOURCES = pathlib.Path(pocketgraph.__file__).parent
ROOT = pathlib.Path(__file__).parents[2]
VERSIONS = pytest.mark.parametrize("version_of", [checkout_version, content_version])


@pytest.fixture
def package(tmp_path: pathlib.Path) -> pathlib.Path:
    folder = tmp_path / "pocketgraph"
    for part in ("litert", "runtime", "cli"):
        shutil.copytree(SOURCES / part, folder / part, ignore=shutil.ignore_patterns("__pycache__"))
    return folder


@VERSIONS
@pytest.mark.parametrize("changed", ["litert/engine.py", "runtime/planning/plan_cache.py", "litert/new.py"])
def test_a_changed_lowering_gives_another_version(
    package: pathlib.Path, changed: str, version_of: Callable[[str], str]
) -> None:
    before = version_of(str(package))
    assert version_of(str(package)) == before
    with open(package / changed, "a") as file:
        file.write("\n")
    assert version_of(str(package)) != before


@VERSIONS
def test_a_lowering_of_the_same_size_gives_another_version(
    package: pathlib.Path, version_of: Callable[[str], str]
) -> None:
    before = version_of(str(package))
    lowering = max((package / "litert" / "lowerings").rglob("*.py"), key=lambda path: path.stat().st_size)
    content = bytearray(lowering.read_bytes())
    content[-2] ^= 1
    lowering.write_bytes(content)
    assert version_of(str(package)) != before


@VERSIONS
def test_what_makes_nothing_that_is_kept_does_not_count(
    package: pathlib.Path, version_of: Callable[[str], str]
) -> None:
    before = version_of(str(package))
    (package / "cli" / "look" / "plan.py").write_text("changed = 1\n")
    (package / "litert" / "__pycache__").mkdir()
    (package / "litert" / "__pycache__" / "engine.pyc").write_text("compiled")
    (package / "litert" / BUILT).write_text("0123")
    assert version_of(str(package)) == before


def test_an_installed_package_has_the_version_that_it_was_built_with(package: pathlib.Path) -> None:
    whole = package.parent / "whole" / "pocketgraph"
    shutil.copytree(SOURCES, whole, ignore=shutil.ignore_patterns("__pycache__"))
    ask = "from pocketgraph.litert.code_version import code_version; print(code_version())"
    environment = {**os.environ, "PYTHONPATH": str(whole.parent), "PYTHONDONTWRITEBYTECODE": "1"}

    def told() -> str:
        return subprocess.run(
            [sys.executable, "-c", ask], env=environment, cwd=whole, capture_output=True, text=True, check=True
        ).stdout.strip()

    assert told() == checkout_version(str(whole))
    (whole / "litert" / BUILT).write_text("built 7")
    assert told() == "built 7"


def test_names_in_the_cache_follow_from_it(monkeypatch: pytest.MonkeyPatch) -> None:
    before = cache.entry_name("model", "x -> y")
    monkeypatch.setattr(cache, "code_version", lambda: "other")
    assert cache.entry_name("model", "x -> y") != before
    assert len(code_version.code_version()) > 8


def test_only_what_the_runtime_does_not_stand_on_is_left_out() -> None:
    imports = house()
    seen, waiting = set(), [name for name in imports if name.startswith("pocketgraph.runtime")]
    while waiting:
        name = waiting.pop()
        if name not in seen:
            seen.add(name)
            waiting.extend(imports[name])
    assert ABOVE.isdisjoint(name.split(".")[1] for name in seen if "." in name)
    assert {path.name for path in (ROOT / "src" / "pocketgraph").iterdir() if path.is_dir()} >= ABOVE
