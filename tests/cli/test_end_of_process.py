"""A command's process ends without looking for garbage, and its idle threads sleep; callers of ``main`` see neither."""

from __future__ import annotations

import gc
import os
import subprocess
import sys

import pytest

from pocketgraph.cli.main import main
from support import ROOT

PROGRAM = """
import atexit, gc, os, sys
atexit.register(lambda: print("frozen", gc.get_freeze_count() > 0, os.environ.get("OPENBLAS_THREAD_TIMEOUT")))
from pocketgraph.cli.main import main
{call}
"""


@pytest.mark.parametrize(
    ("call", "code", "is_frozen"),
    [
        ("main()", 0, True),
        ("sys.argv = ['pocketgraph', 'nothing']; main()", 2, True),
        ("main(['--version'])", 0, False),
    ],
)
def test_a_process_that_is_the_commands_alone_ends_at_once(call: str, code: int, is_frozen: bool) -> None:
    arguments = [sys.executable, "-c", PROGRAM.format(call=call), "--version"]
    for chosen in (None, "7"):
        own = {key: value for key, value in os.environ.items() if key != "OPENBLAS_THREAD_TIMEOUT"}
        own |= {} if chosen is None else {"OPENBLAS_THREAD_TIMEOUT": chosen}
        ran = subprocess.run(arguments, capture_output=True, text=True, check=False, env=own)
        assert ran.returncode == code, ran.stderr
        assert ran.stdout.splitlines()[-1] == f"frozen {is_frozen} {chosen or ('22' if is_frozen else None)}"
        if code == 0:
            assert ran.stdout.startswith("pocketgraph ")


def test_a_caller_of_main_has_nothing_frozen() -> None:
    before = gc.get_freeze_count()
    with pytest.raises(SystemExit):
        main(["--version"])
    assert gc.get_freeze_count() <= before  # what the tests froze may go


def test_a_command_that_is_stopped_while_python_imports_it_says_so_in_a_line() -> None:
    program = """
import sys

class Stop:
    def find_spec(self, name, *_):
        if name == "pocketgraph.cli.main":
            raise KeyboardInterrupt

sys.meta_path.insert(0, Stop())
from pocketgraph.__main__ import main
main()
"""
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stderr) == (130, "error: stopped\n")
    assert 'pocketgraph = "pocketgraph.__main__:main"' in (ROOT / "pyproject.toml").read_text()


def test_a_library_that_makes_another_error_of_a_stop_while_it_is_imported_is_stopped(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def imported(name: str) -> None:
        try:
            raise KeyboardInterrupt
        except KeyboardInterrupt as stop:
            raise ImportError("initialization failed") from stop  # as pybind11's modules

    monkeypatch.setattr("pocketgraph.cli.main.import_module", imported)
    with pytest.raises(SystemExit) as end:
        main(["summarize", "model.pb"])
    assert (end.value.code, capsys.readouterr().err) == (130, "error: stopped\n")
