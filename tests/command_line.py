"""Calls of the command line, in this process."""

from __future__ import annotations

import pytest

from pocketgraph.cli.main import main


def call(*arguments: object) -> int:
    """The exit code of ``pocketgraph`` with these arguments."""
    with pytest.raises(SystemExit) as stop:
        main([str(argument) for argument in arguments])
    return int(stop.value.code or 0)
