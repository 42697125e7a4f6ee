"""The labelling page's server: shows photos, and answers a decision when it is on the disk."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
from collections.abc import Sequence
from typing import Any

from pocketgraph.apps.labelling.exports import export_command, size_of
from pocketgraph.apps.labelling.labels_file import AGREED, Box, Judgement, LabelsFile
from pocketgraph.apps.labelling.rater_agreement import agreement
from pocketgraph.apps.labelling.suggestions import Suggestion
from pocketgraph.apps.page_server import PageServer, Place, body_of
from pocketgraph.errors import FormatError, PocketgraphError, UsageError
from pocketgraph.pages.json_text import finite

MOST_OF_A_DECISION = 1 << 20
"""Bytes."""
PHOTO_TYPES = {".png": "image/png", ".bmp": "image/bmp", ".gif": "image/gif", ".webp": "image/webp"}


class LabelServer(PageServer):
    """Serves the photos of a folder to one rater.

    Args:
        folder: of the photos.
        photos: their paths in it, with "/", in the order to be shown.
        labels: where decisions go.
        rater: who decides.
        suggested: a model's class for each photo, if any.
        place: where it listens.

    Raises:
        UsageError: the rater has no name or that of who settles disputes, or the extra ``live`` is not installed.
    """

    def __init__(
        self,
        folder: str,
        photos: Sequence[str],
        labels: LabelsFile,
        rater: str,
        suggested: Sequence[Suggestion | None] = (),
        place: Place | None = None,
    ) -> None:
        if not rater.strip() or not rater.isprintable() or rater == AGREED:
            raise UsageError(f"'{rater}' is no name of a rater")
        self._folder, self._photos, self._labels, self._rater = folder, list(photos), labels, rater
        self._places = {path: number for number, path in enumerate(self._photos)}
        self._order = hashlib.sha256("\0".join(self._photos).encode("utf-8", "surrogatepass")).hexdigest()[:16]
        self._suggested = list(suggested) or [None] * len(self._photos)
        super().__init__("pocketgraph.apps.labelling", place, shared=("style.css",))

    def routes(self) -> list[Any]:
        """What the page asks for."""
        return [
            self.route("/about", self._about),
            self.route("/disputed", self._disputed),
            self.route("/photo/{number:int}", self._photo),
            self.route("/decide", self._decide, "POST"),
        ]

    async def _about(self, request: Any) -> Any:
        """The classes, the photos, and what the rater has said so far."""
        self._labels.refresh()
        said = self._labels.of(self._rater)
        session = f"{os.path.abspath(self._labels.path)} {self._rater}"
        return {
            "folder": os.path.basename(os.path.abspath(self._folder)),
            "session": hashlib.sha256(session.encode()).hexdigest()[:16],
            "order": self._order,
            "rater": self._rater,
            "classes": self._labels.classes,
            "boxes": self._labels.has_boxes,
            "next": export_command(self._labels.path, self._folder, has_boxes=self._labels.has_boxes),
            "photos": [
                {
                    "path": path,
                    "said": _plain(said.get(path)),
                    **({} if one is None else {"suggested": one.label, "doubt": round(one.doubt, 4)}),
                }
                for path, one in zip(self._photos, self._suggested, strict=True)
            ],
            "history": [self._places[path] for path in self._labels.history(self._rater) if path in self._places],
        }

    async def _disputed(self, request: Any) -> Any:
        """The photos that raters disagree on, with what each said, and how far they agree in all."""
        self._labels.refresh()
        found = await asyncio.to_thread(agreement, self._labels)
        by_rater = {name: self._labels.of(name) for name in found.raters}
        return {
            "order": self._order,
            "raters": found.raters,
            "pairs": finite(found.pairs),
            "fleiss": finite(found.fleiss),
            "shared": found.shared,
            "photos": [
                {
                    "number": self._places[path],
                    "path": path,
                    "said": [_plain(said[path]) for said in by_rater.values() if path in said],
                }
                for path in found.disputed
                if path in self._places
            ],
        }

    async def _photo(self, request: Any) -> Any:
        """A photo's file."""
        from starlette.responses import FileResponse, PlainTextResponse

        if request.query_params.get("order", self._order) != self._order:
            return PlainTextResponse("the photos are others since the command was started again\n", 410)
        number = request.path_params["number"]
        path = self._file_of(self._photos[number]) if number < len(self._photos) else ""
        if not os.path.isfile(path):
            return PlainTextResponse("there is nothing here\n", 404)
        headers = {"X-Content-Type-Options": "nosniff", "Cross-Origin-Resource-Policy": "same-origin"}
        kind = PHOTO_TYPES.get(os.path.splitext(path)[1].lower(), "image/jpeg")
        return FileResponse(path, media_type=kind, headers=headers)

    async def _decide(self, request: Any) -> Any:
        """One decision: it is on the disk when this answers."""
        from starlette.responses import PlainTextResponse

        data = await body_of(request, MOST_OF_A_DECISION)
        if data is None:
            return PlainTextResponse("the decision is too large\n", 413)
        try:
            is_new = self._written(data)
        except UsageError as error:
            return PlainTextResponse(f"{error}\n", 400)
        except PocketgraphError as error:  # the disk may have room again in a minute: the page asks again
            return PlainTextResponse(f"{error}\n", 503)
        return {"new": is_new}

    def _written(self, data: bytes) -> bool:
        try:
            request = json.loads(data)
            path, kind, key = (str(request[name]) for name in ("path", "decision", "id"))
            shares = [(str(box["label"]), *map(float, box["box"])) for box in request.get("boxes", ())]
            rater = AGREED if request.get("settles") else self._rater
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            raise UsageError("this is no decision") from None
        if path not in self._places or not 8 <= len(key) <= 64:
            raise UsageError(f"there is no photo '{path[:200]}'")
        if kind == "undo":
            return self._labels.decide(None, key, path=path, rater=rater)
        boxes = self._in_pixels(path, shares) if shares else ()
        label = str(request.get("label", "")) if kind == "label" else ""
        return self._labels.decide(Judgement(path, rater, kind, label, boxes), key)

    def _in_pixels(self, path: str, shares: Sequence[tuple[Any, ...]]) -> tuple[Box, ...]:
        """Boxes of shares of a photo's width and height (label, x, y, width, height), in its pixels."""
        try:
            wide, tall = size_of(self._file_of(path))
        except FormatError as error:
            raise UsageError(error.what, where=path) from None
        found = []
        for label, *sides in shares:
            if len(sides) != 4 or not all(0 <= side <= 1 for side in sides):
                raise UsageError("a box lies outside of the photo")
            x, y, width, height = sides
            x, y = round(x * wide, 1), round(y * tall, 1)
            found.append(
                Box(label, x, y, round(min(width * wide, wide - x), 1), round(min(height * tall, tall - y), 1))
            )
        return tuple(found)

    def _file_of(self, path: str) -> str:
        return os.path.join(self._folder, *path.split("/"))


def _plain(judgement: Judgement | None) -> dict[str, Any] | None:
    if judgement is None:
        return None
    plain: dict[str, Any] = {"rater": judgement.rater, "decision": judgement.kind}
    if judgement.kind == "label":
        plain["label"] = judgement.label
    if judgement.kind == "boxes":
        plain["boxes"] = [
            {"label": box.label, "pixels": [box.x, box.y, box.width, box.height]} for box in judgement.boxes
        ]
    return plain
