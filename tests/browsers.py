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


@contextlib.contextmanager
def browser(flags: Sequence[str] = ()) -> Iterator[Any]:
    """A started Chromium; the test is skipped where there is none."""
    if CHROMIUM is None:
        pytest.skip("Chromium is not installed (apt-get install chromium)")
    playwright = pytest.importorskip(
        "playwright.sync_api", reason="playwright is not installed (pip install playwright)"
    )
    with playwright.sync_playwright() as started:
        chromium = started.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", *flags])
        try:
            yield chromium
        finally:
            chromium.close()


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
