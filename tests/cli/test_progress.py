"""One bar for all the work: it never goes back, and says in a pipe how much is done."""

from __future__ import annotations

import io
import sys

import pytest

from pocketgraph.cli.shared import progress
from pocketgraph.cli.shared.progress import QUANTIZING, SHARES, SHIPPING, Total, progress_bar


def test_stages_add_up_to_all_of_it() -> None:
    total = Total(QUANTIZING)
    seen = [total.done(stage, done, 10) for stage in QUANTIZING for done in range(11)]
    assert seen == sorted(seen)
    assert (seen[0], seen[-1]) == (0, 1)
    assert set(QUANTIZING) | set(SHIPPING) <= set(SHARES)


def test_what_is_left_out_counts_as_done_and_what_is_unknown_adds_nothing() -> None:
    total = Total(("calibrating", "fitting weights"))
    assert total.done("fitting weights", 0, 5) == pytest.approx(25 / 60)
    assert total.done("something else", 3, 5) == pytest.approx(25 / 60)


def test_further_rounds_take_of_what_is_left() -> None:
    total = Total(("calibrating", "judging"), first=0.6)
    assert total.done("judging", 10, 10) == pytest.approx(0.6)
    assert total.done("calibrating", 0, 10) == pytest.approx(0.6)
    assert total.done("judging", 1, 1) == pytest.approx(0.84)


def test_a_pipe_gets_lines(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(progress, "SECONDS_A_LINE", 0.0)
    with progress_bar(("calibrating", "judging")) as tell:
        tell("calibrating", 1, 2)
        tell("judging", 2, 2)
    lines = capsys.readouterr().err.splitlines()
    assert [line.rpartition(", after")[0] for line in lines] == [
        "calibrating: 1 of 2, 36% of all", "judging: 2 of 2, 100% of all",
    ]  # fmt: skip


@pytest.mark.parametrize(("columns", "shown"), [(40, False), (60, True), (100, True)])
def test_a_bar_fits_its_terminal(columns: int, shown: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """The stage and the share whole, the time left where there is room."""
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setenv("TERM", "xterm")
    with progress_bar(QUANTIZING) as tell:
        tell("weighing each tensor", 12, 16)
    assert "weighing each tensor, 12 of 16" in terminal.getvalue()
    assert "…" not in terminal.getvalue()
    assert ("left" in terminal.getvalue()) == shown


def test_a_terminal_that_cannot_draw_gets_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("TERM", "dumb")
    monkeypatch.setattr(progress, "SECONDS_A_LINE", 0.0)
    with progress_bar(("calibrating", "judging")) as tell:
        tell("calibrating", 1, 2)
    assert terminal.getvalue().startswith("calibrating: 1 of 2, 36% of all")


class Terminal(io.StringIO):
    """Standard error as a terminal has it."""

    def isatty(self) -> bool:
        return True


def test_without_samples_the_first_stage_begins_at_nothing_and_ends_near_all() -> None:
    from pocketgraph.cli.shared.progress import SHIPPING_UNSEEN

    total = Total(SHIPPING_UNSEEN, 0.9)
    assert total.done("fitting weights", 1, 100) < 0.02
    assert total.done("fitting weights", 100, 100) > 0.75


def test_a_stage_that_begins_again_is_a_round_of_its_own() -> None:
    """As where more layers stay in float until the budget is kept."""
    total = Total(SHIPPING, 0.6)
    first = total.done("fitting weights", 74, 74)
    total.done("keeping the budget", 1, 4)
    assert first < total.done("fitting weights", 3, 55) < total.done("fitting weights", 55, 55) < 1


def test_without_further_rounds_a_stage_that_begins_again_does_not_end_the_work() -> None:
    """As where two programs are calibrated, one after the other."""
    total = Total(QUANTIZING)
    first = total.done("calibrating", 24, 24)
    assert total.done("calibrating", 1, 24) == first == pytest.approx(0.25)
    assert total.done("weighing each tensor", 1, 2) == pytest.approx(0.325)
    assert total.done("comparing layers", 16, 16) == pytest.approx(1)
