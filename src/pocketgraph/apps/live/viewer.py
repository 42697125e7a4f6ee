"""One page that is connected: its newest frame is answered, older ones are dropped.

Messages of a page, numbers little endian: a binary one is a frame (byte 1, an id of 4 bytes, a JPEG), a piece of sound
(byte 2, an id and the rate of 4 bytes each, float32 samples) or a wish for one more run (byte 3, an id); a text is
JSON: ``{"set": name, "value": v}``, ``{"remember": name}``, ``{"stats": true}`` (times by kind of op with the next
answer), ``{"report": true}`` (a benchmark's times) or ``{"ack": id}``. Messages to it: a text is an answer in JSON with
the frame's id; a binary one, before it, an id of 4 bytes and a JPEG: what the model made, or the server's own frame.
"""

from __future__ import annotations

import asyncio
import json
import os
import struct
import traceback
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from time import monotonic, perf_counter
from typing import Any, TypeAlias

import numpy as np
from starlette.websockets import WebSocketDisconnect

from pocketgraph.apps.live.answers import Application, Frame, Sound
from pocketgraph.apps.live.stills import jpeg, pixels_of
from pocketgraph.apps.picture_model import PictureModel
from pocketgraph.errors import FormatError, PocketgraphError, UsageError, printable

MOST_MESSAGES = 1000
"""A second."""
MOST_SOUNDS = 50
"""Pieces that wait; the oldest of more are dropped."""
PICTURE, SOUND, TICK = 1, 2, 3
Tell: TypeAlias = Callable[[Exception], None]
"""Is told of an exception that is none of ours: a mistake in this program or in a kernel, which ends nothing."""


class Viewer:
    """One page that is connected: its newest frame, its settings, its averages."""

    def __init__(
        self,
        socket: Any,
        application: Application,
        worker: ThreadPoolExecutor,
        frames: Callable[[], Any] | None,
        tell: Tell,
    ) -> None:
        self._socket, self._application, self._worker, self._frames = socket, application, worker, frames
        self._tell = tell
        self._newest: tuple[bytes, float] | None = None
        self._sounds: list[tuple[bytes, float]] = []
        self._arrived = asyncio.Event()
        self._acknowledged = asyncio.Event()
        self._begun = monotonic()
        self._closed = self._timed = False
        self._messages, self._second = 0, 0

    async def serve(self) -> None:
        """Until the page goes away."""
        answering = asyncio.create_task(self._push() if self._frames is not None else self._answer())
        try:
            while True:
                message = await self._socket.receive()
                if message["type"] == "websocket.disconnect":
                    break
                second = int(monotonic())
                self._messages = self._messages + 1 if second == self._second else 1
                self._second = second
                if self._messages > MOST_MESSAGES:
                    await self._socket.close(1008, "too many messages")
                    break
                await self._take(message)
        except (WebSocketDisconnect, RuntimeError):
            pass
        finally:
            self._closed = True
            answering.cancel()

    async def _take(self, message: dict[str, Any]) -> None:
        data = message.get("bytes")
        if data is not None:
            now = perf_counter()
            if data[:1] == bytes([SOUND]):
                self._sounds = [*self._sounds, (data, now)][-MOST_SOUNDS:]
            else:
                self._newest = (data, now)
            self._arrived.set()
            return
        try:
            reply = await self._obeyed((message.get("text") or "")[:10000])
        except Exception as error:
            reply = {"error": self._said(error)}
        if reply:
            await self._send(reply)

    async def _obeyed(self, text: str) -> dict[str, Any]:
        """Does what a text says; the reply, empty for none."""
        try:
            message = json.loads(text)
        except (ValueError, RecursionError):
            raise UsageError("a message is not JSON") from None
        if not isinstance(message, dict):
            raise UsageError("a message is an object")
        if "set" in message:
            self._application.change(str(message["set"]), message.get("value"))
            return {"settings": settings_of(self._application)}
        if "report" in message:
            loop = asyncio.get_running_loop()
            return {"report": await loop.run_in_executor(self._worker, self._able("report"))}
        if "remember" in message:
            self._able("remember")(str(message["remember"])[:100])
        elif "stats" in message:
            self._timed = True
        elif "ack" in message:
            self._acknowledged.set()
        else:
            raise UsageError("this message is not known")
        return {}

    def _able(self, what: str) -> Callable[..., Any]:
        """What not every application can do."""
        function: Callable[..., Any] | None = getattr(self._application, what, None)
        if function is None:
            raise UsageError(f"this application does not {what}: it is {self._application.kind}")
        return function

    def _said(self, error: Exception) -> str:
        """An error in one line for the page; what is none of ours is told here too."""
        if isinstance(error, PocketgraphError):
            return str(error)
        self._tell(error)
        return f"this program made a mistake: {unexpected(error)}"

    async def _send(self, message: dict[str, Any], made: bytes | None = None) -> None:
        """Sends an answer, after what belongs to it; to a page that is gone nothing is sent."""
        with suppress(WebSocketDisconnect, RuntimeError):
            if not self._closed:
                if made is not None:
                    await self._socket.send_bytes(made)
                await self._socket.send_text(json.dumps(message))

    async def _answer(self) -> None:
        """Answers the newest frame, again and again; of sounds each."""
        loop = asyncio.get_running_loop()
        while True:
            await self._arrived.wait()
            if self._sounds:
                data, arrived = self._sounds.pop(0)
            elif self._newest is not None:
                (data, arrived), self._newest = self._newest, None
            else:
                self._arrived.clear()
                continue
            await self._send(*await loop.run_in_executor(self._worker, self._run, data, arrived))

    def _run(self, data: bytes, arrived: float) -> tuple[dict[str, Any], bytes | None]:
        """The answer to a message, and the JPEG that belongs to it."""
        if len(data) < 5:
            return {"error": "a message is too short"}, None
        identity = struct.unpack_from("<I", data, 1)[0]
        try:
            given = self._given(data)
            begun = perf_counter()
            answer = self._application(given)
            ended = perf_counter()
            message = answer.as_json()
            if self._timed and isinstance(given, Frame):
                self._timed = False
                model = getattr(self._application, "labeler", getattr(self._application, "model", None))
                message["stats"] = model.times(given.pixels) if isinstance(model, PictureModel) else []
            made = None if answer.picture is None else struct.pack("<I", identity) + jpeg(answer.picture)
        except Exception as error:  # one frame's; the next one may be answered
            return {"id": identity, "error": self._said(error)}, None
        message.update(id=identity, waited=round(1000 * (begun - arrived), 2), worked=round(1000 * (ended - begun), 2))
        return message, made

    def _given(self, data: bytes) -> Frame | Sound:
        time = monotonic() - self._begun
        if data[0] == SOUND and len(data) >= 9 and (len(data) - 9) % 4 == 0:
            rate = struct.unpack_from("<I", data, 5)[0]
            samples = np.frombuffer(data, "<f4", offset=9)
            if not 1000 <= rate <= 192000 or not np.isfinite(samples).all():
                raise FormatError("the sound is damaged")
            if not self._application.hears:
                raise UsageError("this model takes pictures, not sound")
            return Sound(np.clip(samples, -1, 1), rate, time)
        if data[0] == TICK:
            return Frame(np.zeros((1, 1, 3), np.uint8), time)
        if data[0] != PICTURE:
            raise FormatError("this message is not known")
        if self._application.hears:
            raise UsageError("this model takes sound, not pictures")
        return Frame(pixels_of(data[5:]), time)

    async def _push(self) -> None:
        """Shows the frames of the server's own source, the newest whenever the page has drawn the last one."""
        from pocketgraph.apps.live.newest_frame import Newest

        if self._frames is None:
            return
        loop = asyncio.get_running_loop()
        newest = Newest(self._frames())
        frames = iter(newest)
        identity = 0
        try:
            while True:
                given = await loop.run_in_executor(None, next, frames, None)
                if given is None:
                    await self._send({"ended": True})
                    return
                message, picture = await loop.run_in_executor(self._worker, self._shown, given, identity)
                self._acknowledged.clear()
                await self._send(message, picture)
                await asyncio.wait_for(self._acknowledged.wait(), 30)
                identity += 1
        except asyncio.TimeoutError:
            await self._socket.close(1008, "the page does not answer")
        except Exception as error:  # the source's
            await self._send({"error": self._said(error)})
        finally:
            newest.close()

    def _shown(self, given: Frame | Sound, identity: int) -> tuple[dict[str, Any], bytes | None]:
        message: dict[str, Any] = {"id": identity, "name": given.name}
        pixels = given.pixels if isinstance(given, Frame) else None
        try:
            answer = self._application(given)
            message = {**answer.as_json(), **message}
            pixels = pixels if answer.picture is None else answer.picture
        except Exception as error:  # as in _run; the frame is shown without an answer
            message["error"] = self._said(error)
        return message, None if pixels is None else struct.pack("<I", identity) + jpeg(pixels)


def unexpected(error: Exception) -> str:
    """What an exception says, in one line, with its type and where it was raised."""
    place = traceback.extract_tb(error.__traceback__)
    where = f" ({os.path.basename(place[-1].filename)}, line {place[-1].lineno})" if place else ""
    return printable(f"{type(error).__name__}: {error}").replace("\n", " ")[:300] + where


def settings_of(application: Application) -> list[dict[str, Any]]:
    """An application's settings in types that JSON has."""
    return [
        {
            "name": row.name,
            "text": row.text,
            "value": row.value,
            **(
                {"choices": list(row.choices)} if row.choices else {"min": row.least, "max": row.most, "step": row.step}
            ),
        }
        for row in application.settings()
    ]
