"""Chromium for tests of pages: a page, and what it complains of."""

import contextlib
import shutil
import time
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")

FAKE = ("--use-fake-ui-for-media-stream", "--use-fake-device-for-media-stream")
"""Flags of a browser with a made-up camera and microphone, which it lets every page have."""


_open = contextlib.ExitStack()
_started: dict[Sequence[str], Any] = {}


@contextlib.contextmanager
def browser(flags: Sequence[str] = ()) -> Iterator[Any]:
    """A Chromium, whose pages are closed in the end; it stays for a module's next test that has the same flags.

    The test is skipped where there is none.
    """
    if CHROMIUM is None:
        pytest.skip("Chromium is not installed (apt-get install chromium)")
    playwright = pytest.importorskip(
        "playwright.sync_api", reason="playwright is not installed (pip install playwright)"
    )
    if flags not in _started:
        close_browsers()
        started = _open.enter_context(playwright.sync_playwright())
        _started[flags] = started.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", *flags])
        _open.callback(_started[flags].close)
    try:
        yield _started[flags]
    finally:
        for context in _started[flags].contexts:
            context.close()


def close_browsers() -> None:
    _started.clear()
    _open.close()


def watched(page: Any) -> list[str]:
    """A list that gets what a page prints on its console, and its errors."""
    wrong: list[str] = []
    page.on("console", lambda message: wrong.append(message.text))
    page.on("pageerror", lambda error: wrong.append(str(error)))
    return wrong


def until(page: Any, condition: str, seconds: float = 120) -> None:
    """Waits for a condition in JavaScript; it polls, as a page's policy may let nobody wait by an evaluated text."""
    end = time.monotonic() + seconds
    while not page.evaluate(f"Boolean({condition})"):
        assert time.monotonic() < end, f"{condition}: {page.inner_text('body')}"
        time.sleep(0.1)
