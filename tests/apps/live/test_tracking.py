"""Things that are moved by a known path keep their identity, and are counted."""

import importlib.util

import numpy as np
import pytest

from pocketgraph.apps.detections import Detection
from pocketgraph.apps.live.tracking import Tracker

WITHOUT_FLOW = np.zeros((48, 64, 3), np.uint8)


def box(y: float, x: float, side: float = 0.2) -> Detection:
    return Detection((y - side / 2, x - side / 2, y + side / 2, x + side / 2), 0.9, "cat")


def follow(tracker: Tracker, places: list[list[tuple[float, float]]], step: float = 0.1) -> list[list[int | None]]:
    found = []
    for number, frame in enumerate(places):
        tracker.see(WITHOUT_FLOW, number * step)
        found.append([entry.identity for entry in tracker.match([box(*place) for place in frame], number * step)])
    return found


def test_identities_stay_while_things_cross() -> None:
    tracker = Tracker()
    paths = [[(0.3, 0.1 + 0.04 * i), (0.6, 0.9 - 0.04 * i)] for i in range(20)]
    assert follow(tracker, paths) == [[1, 2]] * 20
    assert tracker.counts() == {"now": 2, "in": 1, "out": 1, "all": 2}


def test_what_wavers_at_the_line_crosses_it_once() -> None:
    tracker = Tracker()
    waver = [0.495, 0.505, 0.49, 0.51, 0.5, 0.515]
    follow(tracker, [[(0.5, x)] for x in (0.4, 0.45, *waver, 0.55, 0.6)])
    assert tracker.counts() == {"now": 1, "in": 1, "out": 0, "all": 1}
    follow(tracker, [[(0.5, x)] for x in (*waver, 0.45)])
    assert tracker.counts()["out"] == 1


def test_an_occlusion_does_not_end_a_track() -> None:
    tracker = Tracker()
    path = [[(0.5, 0.1 + 0.05 * i)] for i in range(16)]
    path[6:10] = [[], [], [], []]
    found = follow(tracker, path)
    assert {identity for frame in found for identity in frame} == {1}
    assert tracker.counts()["all"] == 1


def test_what_is_long_gone_is_forgotten() -> None:
    tracker = Tracker()
    found = follow(tracker, [[(0.5, 0.5)], [(0.5, 0.5)], *[[]] * 20, [(0.5, 0.5)]])
    assert found[-1] == [2]


def test_classes_are_not_mixed_up() -> None:
    tracker = Tracker()
    tracker.match([box(0.5, 0.5)], 0.0)
    (found,) = tracker.match([Detection(box(0.5, 0.5).box, 0.9, "dog")], 0.1)
    assert found.identity == 2


@pytest.mark.skipif(importlib.util.find_spec("cv2") is None, reason="OpenCV is not installed (pocketgraph[camera])")
def test_flow_moves_a_box_between_detections() -> None:
    rng = np.random.default_rng(0)
    thing = np.kron(rng.integers(0, 255, (12, 12, 3)), np.ones((5, 5, 1))).astype(np.uint8)

    def frame(x: int) -> np.ndarray:
        picture = np.full((240, 320, 3), 90, np.uint8)
        picture[90:150, x : x + 60] = thing
        return picture

    tracker = Tracker()
    for number in range(2):
        tracker.see(frame(40), number / 25)
        tracker.match([Detection((90 / 240, 40 / 320, 150 / 240, 100 / 320), 0.9)], number / 25)
    for number in range(2, 22):
        tracker.see(frame(40 + 4 * (number - 1)), number / 25)
    (found,) = tracker.current(21 / 25)
    np.testing.assert_allclose(found.box, (90 / 240, 120 / 320, 150 / 240, 180 / 320), atol=0.012)
    assert found.identity == 1
