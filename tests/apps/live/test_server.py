"""The page's server: what it lets in, what it answers, what it saves."""

import asyncio
import contextlib
import json
import pathlib
import socket
import struct
import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from colours import COLOURS
from pocketgraph.apps.label_image import Labeler
from pocketgraph.apps.live.answers import Answer, Frame
from pocketgraph.apps.live.application_choice import application
from pocketgraph.apps.live.classification import Classification
from pocketgraph.apps.live.stills import jpeg
from pocketgraph.graph.text_format import parse

pytest.importorskip("starlette", reason="Starlette is not installed (pocketgraph[live])")
pytest.importorskip("uvicorn", reason="uvicorn is not installed (pocketgraph[live])")
client = pytest.importorskip("websockets.asyncio.client", reason="websockets is not installed (pocketgraph[live])")

from pocketgraph.apps.live.live_server import LiveServer, Place  # noqa: E402 (after the skips)
from pocketgraph.apps.live.viewer import unexpected  # noqa: E402

RED, BLUE = (np.full((48, 64, 3), colour, np.uint8) for colour in ((255, 0, 0), (0, 0, 255)))


@pytest.fixture
def server(tmp_path: pathlib.Path) -> Iterator[LiveServer]:
    made = LiveServer(application(parse(COLOURS), labels=["red", "green", "blue"]), "colours", stills=str(tmp_path))
    made.bind()
    made.start()
    yield made
    made.stop()


def picture(number: int, pixels: np.ndarray) -> bytes:
    return b"\x01" + struct.pack("<I", number) + jpeg(pixels)


async def talk(port: int, *messages: Any, replies: int, query: str = "", **how: Any) -> list[Any]:
    found = []
    async with client.connect(f"ws://127.0.0.1:{port}/stream{query}", **how) as stream:
        for message in messages:
            await stream.send(message)
        while len(found) < replies:
            reply = await asyncio.wait_for(stream.recv(), 20)
            found.append(json.loads(reply) if isinstance(reply, str) else reply)
    return found


def ask(port: int, path: str, data: bytes | None = None, **headers: str) -> tuple[int, str]:
    request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", data=data, headers=headers)
    try:
        with urllib.request.urlopen(request, timeout=20) as response:
            return response.status, response.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def test_a_frame_is_answered(server: LiveServer) -> None:
    (answer,) = asyncio.run(talk(server.port, picture(7, RED), replies=1))
    assert answer["id"] == 7
    assert answer["classes"][0]["label"] == "red"
    assert answer["classes"][0]["score"] == pytest.approx(0.576, abs=0.01)  # softmax of 1, 0, 0
    assert answer["ms"] > 0


def test_the_newest_frame_is_answered_and_older_ones_are_dropped(server: LiveServer) -> None:
    async def flood() -> dict[str, Any]:
        async with client.connect(f"ws://127.0.0.1:{server.port}/stream") as socket:
            for number in range(200):
                await socket.send(picture(number, RED if number < 199 else BLUE))
            while True:
                answer = json.loads(await asyncio.wait_for(socket.recv(), 20))
                answers.append(answer["id"])
                if answer["id"] == 199:
                    return answer

    answers: list[int] = []
    assert "blue" in [entry["label"] for entry in asyncio.run(flood())["classes"]]
    assert len(answers) < 200
    assert answers == sorted(answers)


def test_bad_messages_get_words(server: LiveServer) -> None:
    damaged = b"\x01" + struct.pack("<I", 3) + b"\xff\xd8 no picture"
    sound = b"\x02" + struct.pack("<II", 4, 16000) + bytes(8)
    replies = asyncio.run(talk(server.port, damaged, replies=1)) + asyncio.run(talk(server.port, sound, replies=1))
    replies += asyncio.run(talk(server.port, "{", '{"set": "treshold", "value": 1}', '{"no": 1}', replies=3))
    said = [reply["error"] for reply in replies]
    assert "the frame is damaged" in said[0]
    assert "takes pictures, not sound" in said[1]
    assert "not JSON" in said[2]
    assert "threshold" in said[3]
    assert "not known" in said[4]


def test_times_by_kind_of_op_come_when_asked_for(server: LiveServer) -> None:
    (answer,) = asyncio.run(talk(server.port, '{"stats": true}', picture(1, RED), replies=1))
    assert any("Softmax" in line or "Mean" in line for line in answer["stats"])


def test_settings_change_the_answer(server: LiveServer) -> None:
    told = '{"set": "threshold", "value": 0.9}'
    settings, answer = asyncio.run(talk(server.port, told, picture(1, RED), replies=2))
    assert settings["settings"][0]["value"] == 0.9
    assert len(answer["classes"]) == 1  # the best stays


@pytest.mark.parametrize("origin", ["http://evil.example", "https://127.0.0.1.evil.example"])
def test_a_page_of_another_origin_is_not_let_in(server: LiveServer, origin: str) -> None:
    with pytest.raises(Exception, match=r"403|1008|rejected"):
        asyncio.run(talk(server.port, picture(1, RED), replies=1, origin=origin))
    assert ask(server.port, "/about", Origin=origin)[0] == 403
    assert ask(server.port, "/still?label=cat", jpeg(RED), Origin=origin)[0] == 403


def test_another_name_of_this_machine_is_not_answered_to(server: LiveServer) -> None:
    code, said = ask(server.port, "/about", Host="evil.example")
    assert code == 403
    assert "evil.example" in said


@pytest.mark.parametrize(
    "said",
    [
        b"POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nZZZ\r\n",
        b"GET / HTTP/1.1\r\nHost: localhost\r\nX: " + b"a" * (1 << 20) + b"\r\n\r\n",
        bytes(range(256)) * 8,
    ],
    ids=["chunks without a size", "a header of a megabyte", "no HTTP"],
)
def test_who_speaks_no_http_is_no_news(capfd: pytest.CaptureFixture[str], server: LiveServer, said: bytes) -> None:
    with socket.create_connection(("127.0.0.1", server.port), 20) as talking, contextlib.suppress(ConnectionError):
        talking.sendall(said)
        while talking.recv(1 << 16):
            pass
    assert ask(server.port, "/")[0] == 200
    assert capfd.readouterr().err == ""


def test_from_outside_the_token_is_needed() -> None:
    made = LiveServer(application(parse(COLOURS)), "colours", Place("0.0.0.0"))
    url = made.bind()
    made.start()
    try:
        token = url.partition("?token=")[2]
        assert len(token) >= 20
        assert ask(made.port, "/about")[0] == 403
        assert ask(made.port, f"/about?token={token[:-1]}")[0] == 403
        assert ask(made.port, f"/about?token={token}")[0] == 200
        assert ask(made.port, f"/?token={token}")[0] == 200
        with pytest.raises(Exception, match=r"403|1008|rejected"):
            asyncio.run(talk(made.port, picture(1, RED), replies=1, query="?token=wrong"))
        assert asyncio.run(talk(made.port, picture(1, RED), replies=1, query=f"?token={token}"))[0]["id"] == 1
    finally:
        made.stop()


def test_huge_messages_and_too_many_viewers_are_turned_away(server: LiveServer) -> None:
    with pytest.raises(Exception, match="1009"):
        asyncio.run(talk(server.port, bytes(9 << 20), replies=1))

    async def crowd() -> str:
        sockets = [await client.connect(f"ws://127.0.0.1:{server.port}/stream") for _ in range(9)]
        try:
            await asyncio.wait_for(sockets[8].recv(), 20)
        except Exception as error:
            return str(error)
        finally:
            for socket in sockets:
                await socket.close()
        return ""

    assert "viewers already" in asyncio.run(crowd())
    assert asyncio.run(talk(server.port, picture(1, RED), replies=1))[0]["id"] == 1


def test_a_flood_of_messages_is_ended_and_others_are_answered(server: LiveServer) -> None:
    async def flood() -> str:
        async with client.connect(f"ws://127.0.0.1:{server.port}/stream") as socket:
            try:
                for _ in range(20):
                    await asyncio.gather(*(socket.send('{"ack": 0}') for _ in range(500)))
                await asyncio.wait_for(socket.recv(), 20)
            except Exception as error:
                return str(error)
        return ""

    assert "too many messages" in asyncio.run(flood())
    assert asyncio.run(talk(server.port, picture(1, RED), replies=1))[0]["id"] == 1


def test_a_frame_of_very_many_pixels_is_not_decoded(server: LiveServer) -> None:
    huge = picture(2, np.zeros((5000, 5000, 3), np.uint8))
    assert len(huge) < 1 << 20
    first, second = asyncio.run(talk(server.port, huge, replies=1)) + asyncio.run(
        talk(server.port, picture(3, RED), replies=1)
    )
    assert "5000 x 5000 pixels, more than 16,777,216" in first["error"]
    assert second["classes"][0]["label"] == "red"


def test_files_of_the_page_and_nothing_else(server: LiveServer) -> None:
    code, page = ask(server.port, "/")
    assert code == 200
    assert "main.js" in page
    for name in ("main.js", "engine.js", "capture.js", "drawing.js", "recorder.js", "live.css"):
        assert ask(server.port, f"/{name}")[0] == 200
    for name in ("/../live_server.py", "/%2e%2e/live_server.py", "/none.js", "/page", "/main.js/"):
        assert ask(server.port, name)[0] == 404


def test_stills_are_saved_by_label(server: LiveServer, tmp_path: pathlib.Path) -> None:
    code, said = ask(server.port, "/still?label=my%20cat", jpeg(RED))
    assert code == 200
    assert (tmp_path / json.loads(said)["saved"]).read_bytes() == jpeg(RED)
    for label in ("Grün & Blau", "Кошки 1", "it's"):
        assert ask(server.port, f"/still?label={urllib.request.quote(label, safe='')}", jpeg(RED))[0] == 200
    wrong = ["../x", "", "..", "a/b", "a\\b", "a:b", "a\nb", "a\x1bb", "-a", ".a", "a?", "猫" * 100]
    for label, data in (*((label, jpeg(RED)) for label in wrong), ("cat", b"none")):
        assert ask(server.port, f"/still?label={urllib.request.quote(label, safe='')}", data)[0] == 400
    assert sorted(entry.name for entry in tmp_path.iterdir()) == sorted(["my cat", "Grün & Blau", "Кошки 1", "it's"])


def test_a_port_that_is_taken(server: LiveServer) -> None:
    other = LiveServer(application(parse(COLOURS)), "colours", Place(port=server.port))
    with pytest.raises(Exception, match="cannot be listened on"):
        other.bind()


def test_a_mistake_in_the_program_is_told_and_the_viewer_goes_on() -> None:
    class Mistaken(Classification):
        def __call__(self, given: Frame) -> Answer:
            return super().__call__(given) if given.pixels[0, 0, 0] > 128 else Answer(milliseconds=1 / 0)

    told: list[Exception] = []
    app = Mistaken(Labeler(parse(COLOURS), ["red", "green", "blue"]))
    made = LiveServer(app, "mistaken", tell=told.append)
    made.bind()
    made.start()

    async def both() -> list[Any]:
        found = []
        async with client.connect(f"ws://127.0.0.1:{made.port}/stream") as socket:
            for number, pixels in enumerate((BLUE, RED)):
                await socket.send(picture(number, pixels))
                found.append(json.loads(await asyncio.wait_for(socket.recv(), 20)))
        return found

    try:
        wrong, right = asyncio.run(both())
    finally:
        made.stop()
    assert wrong["id"] == 0
    assert "ZeroDivisionError: division by zero (test_server.py, line" in wrong["error"]
    assert right["classes"][0]["label"] == "red"
    assert [type(error) for error in told] == [ZeroDivisionError]
    assert unexpected(told[0]) in wrong["error"]


def test_a_source_that_fails_says_why() -> None:
    def frames() -> Iterator[Frame]:
        yield Frame(RED, 0.0, "first")
        raise KeyError("plug")

    told: list[Exception] = []
    made = LiveServer(application(parse(COLOURS)), "colours", frames=frames, tell=told.append)
    made.bind()
    made.start()

    async def watch() -> list[Any]:
        async with client.connect(f"ws://127.0.0.1:{made.port}/stream") as socket:
            found = [await asyncio.wait_for(socket.recv(), 20) for _ in range(2)]
            await socket.send('{"ack": 0}')
            return [found[0], json.loads(found[1]), json.loads(await asyncio.wait_for(socket.recv(), 20))]

    try:
        jpeg_of_it, answer, failed = asyncio.run(watch())
    finally:
        made.stop()
    assert jpeg_of_it[4:6] == b"\xff\xd8"
    assert answer["name"] == "first"
    assert "KeyError: 'plug'" in failed["error"]
    assert len(told) == 1


def test_what_is_no_number_is_null() -> None:
    answer = Answer(classes=(("cat", float("nan")), ("dog", float("inf"))), picture=RED)
    told = json.loads(json.dumps(answer.as_json(), allow_nan=False))
    assert [entry["score"] for entry in told["classes"]] == [None, None]
    assert told["picture"] == {"height": 48, "width": 64}
