"""The live page's server: frames come over a WebSocket, and the newest one is answered."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from pocketgraph.apps.live.answers import Application
from pocketgraph.apps.live.stills import save_still
from pocketgraph.apps.page_server import PageServer, Place, body_of
from pocketgraph.errors import PocketgraphError, option

MOST_VIEWERS = 8  # at a time


class LiveServer(PageServer):
    """Serves one application to its viewers.

    Args:
        application: what answers.
        name: of the model, for people.
        place: where it listens.
        frames: opens the server's own source; None when the pages' cameras are used.
        stills: the folder that pictures with labels are saved in; "" for none.
        tell: is told of an exception that is none of ours; its page is told too, and goes on.

    Raises:
        UsageError: the extra ``live`` is not installed.
    """

    def __init__(
        self,
        application: Application,
        name: str,
        place: Place | None = None,
        frames: Callable[[], Any] | None = None,
        stills: str = "",
        tell: Callable[[Exception], None] = lambda error: None,
    ) -> None:
        self.name, self.stills, self._tell = name, stills, tell
        self._application, self._frames = application, frames
        self._worker = ThreadPoolExecutor(1, "pocketgraph-inference")
        self._viewers = 0
        super().__init__(
            "pocketgraph.apps.live",
            place,
            otherwise=f", or pass {option('output')}=DIR to go without a browser",
        )

    def close(self) -> None:
        """Lets no more frames in."""
        self._worker.shutdown(wait=False, cancel_futures=True)

    def routes(self) -> list[Any]:
        """What the page asks for."""
        from starlette.routing import WebSocketRoute

        return [
            self.route("/about", self._about),
            self.route("/still", self._still, "POST"),
            WebSocketRoute("/stream", self._stream),
        ]

    async def _about(self, request: Any) -> Any:
        """What the page has to know."""
        from pocketgraph.apps.live.viewer import settings_of

        return {
            "name": self.name,
            "kind": self._application.kind,
            "hears": self._application.hears,
            "rate": self._application.rate,
            "source": "server" if self._frames is not None else "page",
            "stills": bool(self.stills),
            "settings": settings_of(self._application),
        }

    async def _still(self, request: Any) -> Any:
        """Saves a JPEG under its label: training data for the next model."""
        from starlette.responses import PlainTextResponse

        data = await body_of(request)
        if data is None:
            return PlainTextResponse("the picture is too large\n", 413)
        label = request.query_params.get("label", "").strip()
        try:
            place = await asyncio.to_thread(save_still, self.stills, label, data)
        except PocketgraphError as error:
            return PlainTextResponse(f"{error}\n", 400)
        return {"saved": place}

    async def _stream(self, socket: Any) -> None:
        """One viewer."""
        from pocketgraph.apps.live.viewer import Viewer

        if why := self.refusal(socket.headers, socket.query_params):
            await socket.close(1008, why[:120])
            return
        await socket.accept()
        if self._viewers >= MOST_VIEWERS:
            await socket.close(1013, f"there are {MOST_VIEWERS} viewers already")
            return
        self._viewers += 1
        try:
            viewer = Viewer(socket, self._application.another(), self._worker, self._frames, self._tell)
            await viewer.serve()
        finally:
            self._viewers -= 1
