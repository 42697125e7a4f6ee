"""A server for one page and those who look at it: nothing else is let in, and the page loads nothing from elsewhere.

From outside this machine its address needs the token; a page of another origin is never let in, nor is a name that
another machine's owner pointed here.
"""

from __future__ import annotations

import hmac
import logging
import os
import re
import secrets
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from importlib.resources import files
from time import monotonic
from typing import Any

from pocketgraph.errors import UsageError, option

LOOPBACK = ("127.0.0.1", "localhost", "::1")
MOST_BYTES = 8 << 20
"""Of one message."""
TYPES = {".html": "text/html; charset=utf-8", ".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}
POLICY = "default-src 'self'; img-src 'self' blob: data:; style-src 'self' 'unsafe-inline'; connect-src 'self'"
"""What the page may load: nothing from anywhere else."""


@dataclass(frozen=True)
class Place:
    """Where a server listens.

    Attributes:
        host: an address of this machine; others than this machine's own need the token.
        port: 0 for any that is free.
        token: what a URL must have from outside.
        certificate, key: files for HTTPS; "" for none.
    """

    host: str = "127.0.0.1"
    port: int = 0
    token: str = ""
    certificate: str = ""
    key: str = ""

    @property
    def is_private(self) -> bool:
        """Whether only this machine can reach it."""
        return self.host in LOOPBACK


class PageServer:
    """Serves a page, the files in ``page/`` of a package, with routes of its own.

    Args:
        package: whose page it is.
        place: where it listens.
        shared: files of ``pocketgraph.pages`` that the page uses.
        otherwise: what to do without the extra, for the error's hint.

    Raises:
        UsageError: the extra ``live`` is not installed.
    """

    def __init__(
        self, package: str, place: Place | None = None, *, shared: Sequence[str] = (), otherwise: str = ""
    ) -> None:
        try:
            import starlette  # noqa: F401 (only whether it is there)
            import uvicorn
            import websockets  # noqa: F401
        except ImportError:
            raise UsageError(
                "the page needs Starlette, uvicorn and websockets, which are not installed",
                hint="pip install 'pocketgraph[live]'" + otherwise,
            ) from None
        place = place or Place()
        if not place.is_private and not place.token:
            place = Place(place.host, place.port, secrets.token_urlsafe(18), place.certificate, place.key)
        self.place, self.shared, self._package = place, tuple(shared), package
        config = uvicorn.Config(
            self._app(),
            host=place.host,
            port=place.port,
            log_level="error",
            access_log=False,
            ws="websockets-sansio",
            ws_max_size=MOST_BYTES,
            ssl_certfile=place.certificate or None,
            ssl_keyfile=place.key or None,
            timeout_graceful_shutdown=2,
        )
        logging.getLogger("uvicorn.error").addFilter(_is_ours)
        self._server = uvicorn.Server(config)
        self._thread: threading.Thread | None = None
        self._sockets: list[Any] = []

    def routes(self) -> list[Any]:
        """Starlette's routes beside the page's files."""
        return []

    def route(self, path: str, answer: Callable[[Any], Awaitable[Any]], method: str = "GET") -> Any:
        """A route for those who are let in; where ``answer`` gives no response, what it gives is sent as JSON."""
        from starlette.responses import JSONResponse, PlainTextResponse, Response
        from starlette.routing import Route

        async def answered(request: Any) -> Any:
            if why := self.refusal(request.headers, request.query_params):
                return PlainTextResponse(f"{why}\n", 403)
            found = await answer(request)
            return found if isinstance(found, Response) else JSONResponse(found)

        return Route(path, answered, methods=[method])

    def close(self) -> None:
        """Frees what answers; called when the server ends."""

    def bind(self) -> str:
        """Takes the port, so that the URL is known.

        Returns:
            the URL to open.

        Raises:
            UsageError: the port is taken, or the address is not this machine's.
        """
        import socket

        family = socket.AF_INET6 if ":" in self.place.host else socket.AF_INET
        taken = socket.socket(family, socket.SOCK_STREAM)
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            taken.bind((self.place.host, self.place.port))
            taken.listen(100)  # who asks before the server runs waits for it
        except OSError as error:
            taken.close()
            raise UsageError(
                f"{self.place.host}:{self.place.port} cannot be listened on: {error.strerror or error}",
                hint=f"pass another {option('port')}",
            ) from None
        self._sockets = [taken]
        self.port = int(taken.getsockname()[1])
        host = _reachable() if self.place.host in ("0.0.0.0", "::") else self.place.host
        host = f"[{host}]" if ":" in host else host
        token = f"?token={self.place.token}" if self.place.token else ""
        return f"{'https' if self.place.certificate else 'http'}://{host}:{self.port}/{token}"

    def run(self) -> None:
        """Serves until it is interrupted."""
        self._server.run(self._sockets)

    def start(self) -> None:
        """Serves in a thread of its own, until ``stop``."""
        self._server.install_signal_handlers = lambda: None
        self._thread = threading.Thread(target=self._server.run, args=(self._sockets,), daemon=True)
        self._thread.start()
        until = monotonic() + 20
        while not self._server.started and monotonic() < until:
            threading.Event().wait(0.02)

    def stop(self) -> None:
        """Ends."""
        self._server.should_exit = True
        if self._thread is not None:
            self._thread.join(10)
        self.close()

    def _app(self) -> Any:
        from starlette.applications import Starlette
        from starlette.routing import Route

        @asynccontextmanager
        async def lifespan(app: Any) -> AsyncIterator[None]:
            yield
            self.close()

        return Starlette(routes=[*self.routes(), Route("/{name:path}", self._file)], lifespan=lifespan)

    def refusal(self, headers: Any, query: Any) -> str:
        """Why a request is not let in; "" when it is."""
        host = headers.get("host", "")
        name = re.sub(r":\d+$", "", host).strip("[]")
        if self.place.is_private and name not in LOOPBACK:
            return f"this page answers to {' and '.join(LOOPBACK[:2])} only, not to '{name[:100]}'"
        origin = headers.get("origin")
        if origin is not None and re.sub(r"^https?://", "", origin) != host:
            return f"a page from '{origin[:100]}' may not use this one"
        if self.place.token and not hmac.compare_digest(query.get("token", "").encode(), self.place.token.encode()):
            return "the token in the address is wrong: use the whole address that the command printed"
        return ""

    async def _file(self, request: Any) -> Any:
        """A file of the page."""
        from starlette.responses import PlainTextResponse, Response

        name = request.path_params["name"] or "index.html"
        if name == "index.html" and (why := self.refusal(request.headers, request.query_params)):
            return PlainTextResponse(f"{why}\n", 403)
        if name == "favicon.ico":
            return Response(status_code=204)
        page = files("pocketgraph.pages") / name if name in self.shared else files(self._package) / "page" / name
        suffix = os.path.splitext(name)[1]
        if not re.fullmatch(r"[\w.]+", name) or suffix not in TYPES or not page.is_file():
            return PlainTextResponse("there is nothing here\n", 404)
        headers = {"Content-Security-Policy": POLICY, "X-Content-Type-Options": "nosniff", "Cache-Control": "no-cache"}
        return Response(page.read_bytes(), media_type=TYPES[suffix], headers=headers)


async def body_of(request: Any, most: int = MOST_BYTES) -> bytes | None:
    """What a request brings; None where that is more than ``most`` bytes."""
    data = bytearray()
    async for part in request.stream():
        data += part
        if len(data) > most:
            return None
    return bytes(data)


def _reachable() -> str:
    """An address of this machine in its network; nothing is sent to find it."""
    import socket

    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))
            return str(probe.getsockname()[0])
        except OSError:
            return socket.gethostname()


def _is_ours(record: logging.LogRecord) -> bool:
    """Whether an error is the server's own: that a client breaks off, or speaks no HTTP, is no news."""
    error = record.exc_info[0] if record.exc_info else None
    return error is None or error.__module__.partition(".")[0] not in ("h11", "websockets")
