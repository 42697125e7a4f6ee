"""What the commands with a page have in common: where it listens, and that a browser opens it."""

from __future__ import annotations

import contextlib
import os
import signal
from typing import TYPE_CHECKING

import click

from pocketgraph.cli.shared.options import together
from pocketgraph.cli.shared.output import echo

if TYPE_CHECKING:
    from pocketgraph.apps.page_server import PageServer

server_options = together(
    click.option(
        "--host", default="127.0.0.1", show_default=True, help="Listen there; others than this machine need the URL."
    ),
    click.option("--port", type=click.IntRange(0, 65535), default=8910, show_default=True, help="0 takes a free one."),
    click.option("--browser/--no-browser", default=True, help="Open the page."),
)


def serve(server: PageServer, what: str, browser: bool) -> None:
    """Serves a page until it is interrupted.

    Args:
        server: not yet started.
        what: words before "at" and the URL.
        browser: whether to open one, where there is one.
    """
    import webbrowser

    url = server.bind()
    echo(f"{what} at {url}")
    if not server.place.is_private:
        if server.place.certificate:
            echo("note: the browser asks once, as this machine vouches for itself (self-signed certificate)")
        else:
            echo("note: without cryptography there is no HTTPS: others may listen in, phones keep cameras back")
    echo("Ctrl-C ends it")
    has_screen = os.environ.get("DISPLAY") or os.name == "nt" or os.uname().sysname == "Darwin"
    if browser and server.place.is_private and has_screen:
        webbrowser.open(url)
    hangup = getattr(signal, "SIGHUP", None)
    if hangup is not None and callable(signal.getsignal(hangup)):  # the server ends by SIGTERM and Ctrl-C in order
        signal.signal(hangup, lambda *_: signal.raise_signal(signal.SIGTERM))
    with contextlib.suppress(KeyboardInterrupt):
        server.run()
