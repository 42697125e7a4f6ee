"""A command's process ends without looking for garbage; a caller of ``main`` keeps Python's collector."""

from __future__ import annotations

import gc
import subprocess
import sys

import pytest

from pocketgraph.cli.main import main

PROGRAM = """
import atexit, gc, sys
atexit.register(lambda: print("frozen", gc.get_freeze_count() > 0, gc.isenabled()))
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
def test_garbage_is_left_alone_where_the_process_is_the_commands(call: str, code: int, is_frozen: bool) -> None:
    arguments = [sys.executable, "-c", PROGRAM.format(call=call), "--version"]
    ran = subprocess.run(arguments, capture_output=True, text=True, check=False)
    assert ran.returncode == code, ran.stderr
    assert ran.stdout.splitlines()[-1] == f"frozen {is_frozen} True"
    if code == 0:
        assert ran.stdout.startswith("pocketgraph ")


def test_a_caller_of_main_has_nothing_frozen() -> None:
    before = gc.get_freeze_count()
    with pytest.raises(SystemExit):
        main(["--version"])
    assert gc.get_freeze_count() == before
