"""The labelling page in Chromium, with real key presses and a mouse, and a server that is killed in the middle."""

import contextlib
import json
import os
import pathlib
import re
import shlex
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from PIL import Image

from browsers import browser, until, watched
from command_line import call
from pocketgraph.apps.labelling.labels_file import Box, Judgement, LabelsFile

pytest.importorskip("uvicorn", reason="uvicorn is not installed (pocketgraph[live])")
pytest.importorskip("starlette", reason="Starlette is not installed (pocketgraph[live])")
pytest.importorskip("websockets", reason="websockets is not installed (pocketgraph[live])")

from pocketgraph.apps.labelling.labelling_server import LabelServer
from pocketgraph.apps.page_server import Place
from support import default_signals

CLASSES = ["cat", "dog", "eel"]


def photos_in(folder: pathlib.Path, count: int) -> list[str]:
    folder.mkdir()
    rng = np.random.default_rng(0)
    for number in range(count):
        Image.fromarray(rng.integers(0, 256, (24, 40, 3), np.uint8)).save(folder / f"{number:03}.png")
    return sorted(path.name for path in folder.iterdir())


@contextlib.contextmanager
def started(*arguments: object) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """The command in a process of its own, and its URL."""
    line = [sys.executable, "-m", "pocketgraph", "dataset", "label", *map(str, arguments), "--no-browser"]
    process = subprocess.Popen(
        line, stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONUNBUFFERED": "1"},
        preexec_fn=default_signals if os.name == "posix" else None,
    )  # fmt: skip
    try:
        assert process.stdout is not None
        said = process.stdout.readline()
        found = re.search(r"http://\S+", said)
        assert found, said
        yield found[0], process
    finally:
        process.kill()
        process.wait()


@contextlib.contextmanager
def served(folder: pathlib.Path, names: list[str], labels: LabelsFile, rater: str) -> Iterator[str]:
    server = LabelServer(str(folder), names, labels, rater)
    url = server.bind()
    server.start()
    try:
        yield url
    finally:
        server.stop()


def text_is(page: Any, selector: str, text: str) -> None:
    until(page, f"document.querySelector({json.dumps(selector)})?.textContent.includes({json.dumps(text)})")


@pytest.mark.skipif(os.name != "posix", reason="signals are those of POSIX")
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_server_that_is_ended_says_what_is_next(how: signal.Signals, tmp_path: pathlib.Path) -> None:
    photos_in(tmp_path / "photos", 2)
    flags = [tmp_path / "photos", "--classes=cat,dog", "--rater=ann", "-o", tmp_path / "l.jsonl", "--port=0"]
    with started(*flags) as (url, process):
        with urllib.request.urlopen(url) as answer:  # it serves by now
            assert answer.status == 200
        process.send_signal(how)
        said, _ = process.communicate(timeout=60)
    assert process.returncode == 0
    assert "l.jsonl; next:\n  pocketgraph dataset export " in said


def test_200_photos_and_a_server_that_is_killed_lose_no_decision(tmp_path: pathlib.Path) -> None:
    names = photos_in(tmp_path / "photos", 200)
    place = tmp_path / "l.jsonl"
    wanted = {name: CLASSES[number * 7 % 3] for number, name in enumerate(names)}
    flags: list[object] = [tmp_path / "photos", "--classes=cat,dog,eel", "--rater=ann", "-o", place]
    with browser() as chromium:
        page = chromium.new_page()
        with started(*flags, "--port=0") as (url, process):
            port = url.rstrip("/").rpartition(":")[2]
            page.goto(url)
            text_is(page, "#count", "0 of 200")
            for number, name in enumerate(names[:120]):
                page.keyboard.press(str(CLASSES.index(wanted[name]) + 1))
                if number == 90:  # while keys are still being pressed
                    os.kill(process.pid, signal.SIGKILL)
            text_is(page, "#count", "120 of 200")
            text_is(page, "#message", "the server is away")
            before = LabelsFile(place).of("ann")
            assert len(before) < 120
            page.on("dialog", lambda dialog: dialog.accept())
        with started(*flags[:1], "--rater=ann", "-o", place, f"--port={port}"):
            until(page, "document.querySelector('#message').hidden")
            for name in names[120:150]:
                page.keyboard.press(str(CLASSES.index(wanted[name]) + 1))
            page.reload()  # what still waits is in the browser's store
            text_is(page, "#count", "150 of 200")
            for name in names[150:]:
                page.keyboard.press(str(CLASSES.index(wanted[name]) + 1))
            text_is(page, "#stage", "All 200 photos are judged")
            until(page, "!Object.entries(localStorage).some(([, kept]) => kept !== '[]')")
            proposed = page.inner_text("#stage").partition("Next: pocketgraph ")[2]
    assert call(*shlex.split(proposed)) == 0
    assert sorted(path.name for path in (tmp_path / "photos.labelled").iterdir()) == CLASSES
    found = LabelsFile(place)
    assert {path: one.label for path, one in found.of("ann").items()} == wanted
    assert len(found.history("ann")) == 200


def test_keys_undo_skip_look_around_and_resume(tmp_path: pathlib.Path) -> None:
    names = photos_in(tmp_path / "photos", 5)
    labels = LabelsFile(tmp_path / "l.jsonl", CLASSES)
    with browser() as chromium, served(tmp_path / "photos", names, labels, "ann") as url:
        page = chromium.new_page()
        wrong = watched(page)
        asked: list[str] = []
        page.on("request", lambda request: asked.append(request.url))
        page.goto(url)
        text_is(page, "#path", "000.png")
        for key, shown in [("1", "001"), ("2", "002"), ("u", "001"), ("3", "002"), ("s", "003")]:
            page.keyboard.press(key)
            text_is(page, "#path", f"{shown}.png")
        page.keyboard.press("ArrowLeft")
        text_is(page, "#said", "skipped")
        page.keyboard.press("ArrowLeft")
        text_is(page, "#said", "you said: eel")
        page.keyboard.press("1")  # another class for a photo that was judged
        text_is(page, "#path", "003.png")
        page.keyboard.press("z")
        assert "scale(2)" in page.evaluate("document.querySelector('.sheet').style.transform")
        page.click("#classes button:nth-child(2)")
        text_is(page, "#count", "4 of 5, 1 skipped")
        until(page, "Object.values(localStorage).every((kept) => kept === '[]')")
        page.reload()
        text_is(page, "#path", "004.png")
        page.keyboard.press("u")
        text_is(page, "#path", "003.png")
        page.keyboard.press("u")  # takes back all that was said of photo 1: it was judged twice
        text_is(page, "#path", "001.png")
        page.keyboard.press("2")
        text_is(page, "#path", "003.png")
        until(page, "Object.values(localStorage).every((kept) => kept === '[]')")
        assert not wrong
        assert {address.split("/")[2] for address in asked} == {url.split("/")[2]}
    labels.refresh()
    assert {p: one.label or one.kind for p, one in labels.of("ann").items()} == {
        "000.png": "cat",
        "001.png": "dog",
        "002.png": "skip",
    }


def test_boxes_are_drawn_by_mouse_and_kept_in_pixels(tmp_path: pathlib.Path) -> None:
    names = photos_in(tmp_path / "photos", 2)
    turned = Image.new("RGB", (80, 40), (9, 9, 9))
    exif = Image.Exif()
    exif[0x0112] = 6  # turned by a quarter: boxes are of the file's own pixels
    turned.save(tmp_path / "photos" / "zz.jpg", exif=exif)
    labels = LabelsFile(tmp_path / "l.jsonl", CLASSES, True)
    with browser() as chromium, served(tmp_path / "photos", ["zz.jpg", *names], labels, "ann") as url:
        page = chromium.new_page(viewport={"width": 1000, "height": 700})
        wrong = watched(page)
        page.goto(url)
        until(page, "document.querySelector('.photo img')?.clientWidth > 50")
        edge = page.eval_on_selector(".photo", "(it) => JSON.parse(JSON.stringify(it.getBoundingClientRect()))")
        assert edge["width"] == pytest.approx(2 * edge["height"], rel=0.01)

        def drag(*shares: float) -> None:
            x, y, u, v = (
                edge["xy"[i % 2]] + share * edge[("width", "height")[i % 2]] for i, share in enumerate(shares)
            )
            page.mouse.move(x, y)
            page.mouse.down()
            page.mouse.move((x + u) / 2, (y + v) / 2)
            page.mouse.move(u, v)
            page.mouse.up()

        page.keyboard.press("2")
        drag(0.1, 0.2, 0.6, 0.7)
        drag(0.5, 0.5, 0.9, 0.9)
        page.keyboard.press("Backspace")
        page.keyboard.press("1")
        drag(0.9, 0.75, 0.75, 0.5)
        page.keyboard.press("Enter")
        text_is(page, "#path", "000.png")
        page.keyboard.press("Enter")
        text_is(page, "#count", "2 of 3")
        until(page, "Object.values(localStorage).every((kept) => kept === '[]')")
        assert not wrong
    labels.refresh()
    (dog, cat) = labels.of("ann")["zz.jpg"].boxes
    assert (dog.label, cat.label) == ("dog", "cat")
    assert [dog.x, dog.y, dog.width, dog.height] == pytest.approx([8, 8, 40, 20], abs=0.5)
    assert [cat.x, cat.y, cat.width, cat.height] == pytest.approx([60, 20, 12, 10], abs=0.5)
    assert labels.of("ann")["000.png"].boxes == ()


def test_boxes_of_before_outlive_a_key_that_comes_before_their_photo(tmp_path: pathlib.Path) -> None:
    names = photos_in(tmp_path / "photos", 2)
    labels = LabelsFile(tmp_path / "l.jsonl", CLASSES, True)
    labels.decide(Judgement(names[0], "ann", "boxes", boxes=(Box("cat", 4, 4, 20, 10),)), "ann-decides")
    with served(tmp_path / "photos", names, labels, "ann") as url, browser() as chromium:
        page = chromium.new_page()
        held: list[Any] = []
        page.route("**/photo/*", lambda route: held.append(route))
        page.goto(url)
        text_is(page, "#path", names[1])
        page.keyboard.press("ArrowLeft")
        text_is(page, "#path", names[0])
        page.keyboard.press("Enter")
        page.keyboard.press("Backspace")  # takes back the last box, of which there is none yet
        text_is(page, "#path", names[0])
        for route in sorted(held, key=lambda route: "photo/0" in route.request.url):  # the other photo's comes late
            route.continue_()
        text_is(page, "#said", "you drew 1 box")
        until(page, "document.querySelectorAll('.photo svg rect').length === 1")
        page.keyboard.press("Enter")
        text_is(page, "#path", names[1])
        until(page, "Object.values(localStorage).every((kept) => kept === '[]')")
        assert "Not written" not in page.inner_text("body")
    labels.refresh()
    (box,) = labels.of("ann")[names[0]].boxes
    assert [box.x, box.y, box.width, box.height] == pytest.approx([4, 4, 20, 10], abs=0.5)


def test_boxes_that_are_not_decided_outlive_looking_around_and_the_page(tmp_path: pathlib.Path) -> None:
    names = photos_in(tmp_path / "photos", 2)
    labels = LabelsFile(tmp_path / "l.jsonl", CLASSES, True)
    with browser() as chromium, served(tmp_path / "photos", names, labels, "ann") as url:
        page = chromium.new_page()
        page.goto(url)
        until(page, "document.querySelector('.photo img')?.clientWidth > 50")
        edge = page.locator(".photo").bounding_box()
        assert edge is not None
        page.mouse.move(edge["x"] + 10, edge["y"] + 10)
        page.mouse.down()
        page.mouse.move(edge["x"] + 90, edge["y"] + 90)
        page.mouse.up()
        text_is(page, "#said", "not decided yet")
        for key, other in (("ArrowRight", names[1]), ("ArrowLeft", names[0]), ("d", ""), ("d", names[0])):
            page.keyboard.press(key)
            text_is(page, "#path", other)
        page.reload()
        text_is(page, "#said", "not decided yet")
        until(page, "document.querySelectorAll('.photo svg rect').length === 1")
        page.keyboard.press("Enter")
        text_is(page, "#path", names[1])
        until(page, "!localStorage.length")
    labels.refresh()
    assert [box.label for box in labels.of("ann")[names[0]].boxes] == ["cat"]


def test_back_counts_while_the_disputed_photos_are_awaited(tmp_path: pathlib.Path) -> None:
    names = photos_in(tmp_path / "photos", 2)
    labels = LabelsFile(tmp_path / "l.jsonl", CLASSES)
    with browser() as chromium, served(tmp_path / "photos", names, labels, "ann") as url:
        page = chromium.new_page()
        page.goto(url)
        text_is(page, "#path", names[0])
        held: list[Any] = []
        page.route("**/disputed*", lambda route: held.append(route))
        with page.expect_request("**/disputed*"):
            page.keyboard.press("d")
        page.keyboard.press("d")
        with page.expect_response("**/disputed*") as answered:
            held[0].continue_()
        answered.value.finished()
        page.keyboard.press("1")
        text_is(page, "#path", names[1])
        assert "disputed" not in page.inner_text("#count")


def test_two_tabs_of_one_rater_lose_nothing_and_see_what_the_other_decided(tmp_path: pathlib.Path) -> None:
    names = photos_in(tmp_path / "photos", 6)
    labels = LabelsFile(tmp_path / "l.jsonl", CLASSES)
    with browser() as chromium, served(tmp_path / "photos", names, labels, "ann") as url:
        context = chromium.new_context()
        one, two = context.new_page(), context.new_page()
        for page in (one, two):
            page.goto(url)
            text_is(page, "#path", names[0])
        one.keyboard.press("1")
        until(one, "!localStorage.length")
        two.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
        text_is(two, "#path", names[1])
        context.set_offline(True)
        for page, key, steps in ((one, "2", 0), (two, "3", 1)):
            for _ in range(steps):
                page.keyboard.press("ArrowRight")
            page.keyboard.press(key)
            text_is(page, "#message", "1 decision waits")
        one.close()
        two.close()
        context.set_offline(False)
        page = context.new_page()
        page.goto(url)
        until(page, "!localStorage.length")
    labels.refresh()
    assert {path: one.label for path, one in labels.of("ann").items()} == dict(zip(names, CLASSES, strict=False))


def test_a_page_that_outlives_a_server_of_other_photos_shows_the_right_ones(tmp_path: pathlib.Path) -> None:
    names = photos_in(tmp_path / "photos", 5)
    labels = LabelsFile(tmp_path / "l.jsonl", CLASSES)
    with browser() as chromium:
        page = chromium.new_page()
        with served(tmp_path / "photos", names[1:], labels, "ann") as url:
            page.goto(url)
            text_is(page, "#path", names[1])
        place = Place(port=int(url.rstrip("/").rpartition(":")[2]))
        server = LabelServer(str(tmp_path / "photos"), names, labels, "ann", place=place)
        server.bind()
        server.start()
        try:
            page.keyboard.press("1")
            text_is(page, "#path", names[2])  # it came ahead of time, when the server was the old one
            with page.expect_navigation():  # the next photo's number is another photo's by now
                page.keyboard.press("2")
            text_is(page, "#path", names[0])
            until(page, "document.querySelector('#stage img').naturalWidth > 0")
        finally:
            server.stop()
    labels.refresh()
    assert {path: one.label for path, one in labels.of("ann").items()} == {names[1]: "cat", names[2]: "dog"}


def test_decisions_wait_where_a_new_server_has_another_token(tmp_path: pathlib.Path) -> None:
    names = photos_in(tmp_path / "photos", 2)
    labels = LabelsFile(tmp_path / "l.jsonl", CLASSES)
    port = 0
    with browser() as chromium:
        page = chromium.new_page()
        for token in ("before", "after"):
            server = LabelServer(str(tmp_path / "photos"), names, labels, "ann", place=Place(port=port, token=token))
            url = server.bind()
            port = server.port
            server.start()
            try:
                if token == "after":
                    page.keyboard.press("2")
                    text_is(page, "#message", "1 decision waits: the token in the address is wrong")
                    page.on("dialog", lambda dialog: dialog.accept())
                page.goto(url)
                text_is(page, "#path", names[token == "after"])
                until(page, "!localStorage.length")
            finally:
                server.stop()
    labels.refresh()
    assert {path: one.label for path, one in labels.of("ann").items()} == {names[0]: "dog"}


def test_disputed_photos_are_side_by_side_and_settled(tmp_path: pathlib.Path) -> None:
    names = photos_in(tmp_path / "photos", 3)
    labels = LabelsFile(tmp_path / "l.jsonl", CLASSES)
    for number, name in enumerate(names):
        labels.decide(Judgement(name, "ann", "label", "cat"), f"ann-{number}")
        labels.decide(Judgement(name, "bob", "label", "cat" if number != 1 else "dog"), f"bob-{number}")
    with browser() as chromium, served(tmp_path / "photos", names, labels, "ann") as url:
        page = chromium.new_page()
        page.goto(url)
        text_is(page, "#stage", "All 3 photos are judged")
        page.keyboard.press("d")
        text_is(page, "#count", "1 of 1 disputed")
        assert page.eval_on_selector_all("figcaption", "(all) => all.map((one) => one.textContent)") == [
            "ann: cat",
            "bob: dog",
        ]
        text_is(page, "#agreement", "Cohen's kappa of 3 photos")
        page.keyboard.press("2")
        text_is(page, "#stage", "No more photos are disputed")
        page.keyboard.press("u")
        text_is(page, "#count", "1 of 1 disputed")
        page.keyboard.press("3")
        page.keyboard.press("d")
        text_is(page, "#count", "3 of 3")
        until(page, "Object.values(localStorage).every((kept) => kept === '[]')")
    labels.refresh()
    assert {path: one.label for path, one in labels.of("agreed").items()} == {"001.png": "eel"}


def test_the_page_is_good_on_narrow_and_dark_screens(tmp_path: pathlib.Path) -> None:
    names = photos_in(tmp_path / "photos", 2)
    labels = LabelsFile(tmp_path / "l.jsonl", ["a class with quite a long name of its own", *CLASSES], True)
    labels.decide(Judgement(names[0], "bob", "boxes", boxes=(Box("cat", 4, 4, 20, 10),)), "bob-decides")
    labels.decide(Judgement(names[0], "ann", "boxes", boxes=(Box("dog", 4, 4, 20, 10),)), "ann-decides")
    with browser() as chromium, served(tmp_path / "photos", names, labels, "ann") as url:
        for scheme in ("light", "dark"):
            page = chromium.new_page(color_scheme=scheme)
            page.goto(url)
            text_is(page, "#path", ".png")
            for width in (400, 1200):
                page.set_viewport_size({"width": width, "height": 800})
                for key in ("", "d"):
                    if key:
                        page.keyboard.press(key)
                        text_is(page, "#count", "disputed")
                    assert page.evaluate("document.documentElement.scrollWidth") <= width
                    if kept := os.environ.get("POCKETGRAPH_SCREENS"):
                        page.wait_for_timeout(200)
                        page.screenshot(path=f"{kept}/label-{scheme}-{width}{key}.png")
                page.keyboard.press("d")
            back = page.evaluate("getComputedStyle(document.body).backgroundColor")
            assert (sum(map(int, re.findall(r"\d+", back)[:3])) < 200) == (scheme == "dark")


def test_who_is_not_let_in(tmp_path: pathlib.Path) -> None:
    names = photos_in(tmp_path / "photos", 1)
    (tmp_path / "secret.png").write_bytes(b"secret")
    labels = LabelsFile(tmp_path / "l.jsonl", CLASSES)
    told = {"path": names[0], "decision": "label", "label": "cat", "id": "some-key"}

    def ask(path: str, data: Any = None, **headers: str) -> int:
        body = None if data is None else json.dumps(data).encode()
        try:
            with urllib.request.urlopen(urllib.request.Request(url + path, body, headers), timeout=10) as reply:
                return int(reply.status)
        except urllib.error.HTTPError as error:
            return error.code

    with served(tmp_path / "photos", names, labels, "ann") as url:
        assert ask("photo/0") == 200
        assert ask("photo/0?order=another") == 410
        for path in ("photo/1", "photo/-1", "photo/..%2Fsecret.png", "..%2Fsecret.png", "nothing.js"):
            assert ask(path) == 404, path
        for path in ("about", "photo/0", "disputed", ""):
            assert ask(path, Host="evil.example") == 403
        assert ask("decide", told, Origin="http://evil.example") == 403
        outside = {"decision": "boxes", "boxes": [{"label": "cat", "box": [2, 0, 1, 1]}]}
        changes = ({"path": "../secret.png"}, {"label": "horse"}, {"id": "k"}, {"decision": "boxes"}, outside)
        for wrong in ([], {"path": "x"}, *({**told, **change} for change in changes)):
            assert ask("decide", wrong) == 400, wrong
        assert ask("decide", "x" * (1 << 21)) == 413
        assert not labels.of("ann")
        assert ask("decide", told) == ask("decide", told) == 200
        assert len(labels.history("ann")) == 1


def test_a_foreign_port_is_refused(tmp_path: pathlib.Path, capsys: Any) -> None:
    from command_line import call

    names = photos_in(tmp_path / "photos", 1)
    labels = LabelsFile(tmp_path / "l.jsonl", CLASSES)
    with served(tmp_path / "photos", names, labels, "ann") as url:
        port = url.rstrip("/").rpartition(":")[2]
        assert call("dataset", "label", tmp_path / "photos", "--classes=a,b", f"--port={port}", "--no-browser") == 2
    assert "pass another --port" in capsys.readouterr().err
