"""Things followed over frames: optical flow between detections, detections matched to tracks, identities kept.

Between two detections a track moves with the key points inside its box (Lucas-Kanade flow, as in the Android demo's
object tracker) where OpenCV is installed, else with its own speed. A track that no detection meets is kept for a while,
so that an occlusion does not end it; then it is forgotten.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from typing import TYPE_CHECKING

import numpy as np

from pocketgraph.apps.detections import Detection, overlaps
from pocketgraph.apps.live.geometry import resized_nearest

if TYPE_CHECKING:
    from pocketgraph.graph.tensor import Array

SIGHT = 320
"""Pixels of the longer side of the picture in which points are followed."""
POINTS = 24
"""Points in one box at most."""
LEAST_POINTS = 4
"""With fewer, a box moves by its speed alone."""
OVERLAP = 0.2
"""Intersection over union from which a detection and a track may be one (the Android demo's)."""
REACH = 1.2
"""Where they do not overlap: the farthest that their centers may be apart, in the box's own sides."""
PATIENCE = 1.5
"""Seconds that a track is kept unseen."""
BIRTH = 2
"""Detections in a row before a track counts."""
PAST = 0.1
"""How far a thing's center has to be past the line, in its width, to have crossed it: places waver."""
MEMORY = 0.6
"""How much of its speed a track keeps at a detection."""


@dataclass
class _Track:
    """One thing.

    Attributes:
        identity: from 1 on.
        found: the last detection.
        box: where it is now: top, left, bottom, right, as shares.
        speed: shares a second, of its center's y and x.
        time, seen: seconds, of ``box`` and of the last detection.
        hits: how many detections it had.
        side: -1 or 1, on which side of the line it last was; 0 before.
    """

    identity: int
    found: Detection
    box: Array
    time: float
    seen: float
    speed: Array = field(default_factory=lambda: np.zeros(2))
    hits: int = 1
    side: int = 0

    def at(self, time: float) -> Array:
        """The box at another time, by its speed."""
        passed = min(max(time - self.time, 0.0), PATIENCE)
        return self.box + np.tile(self.speed, 2) * passed


class Tracker:
    """Follows detections over frames.

    Attributes:
        line: share of the width; a thing whose center crosses it to the right goes in, to the left out.
    """

    def __init__(self, line: float = 0.5) -> None:
        self.line = line
        self.tracks: list[_Track] = []
        self.entered = self.left = self.numbered = self.confirmed = 0
        self._sight: Array | None = None
        self._flow = find_spec("cv2") is not None

    def see(self, pixels: Array, time: float) -> None:
        """Moves the tracks to where their points are in a new frame; uint8 [height, width, 3]."""
        if not self._flow:
            return
        sight = _sight(pixels)
        if self._sight is not None and self._sight.shape == sight.shape and self.tracks:
            self._follow(self._sight, sight, time)
        self._sight = sight

    def match(self, found: Sequence[Detection], time: float) -> list[Detection]:
        """Gives detections of a frame their identities; new ones begin tracks, tracks that are long unseen end.

        Returns:
            the detections, each with the identity of its track.
        """
        pairs = _pairs([track.at(time) for track in self.tracks], [track.found for track in self.tracks], found)
        result = list(found)
        for row, column in pairs:
            self._met(self.tracks[row], found[column], time)
            result[column] = replace(found[column], identity=self.tracks[row].identity)
        taken = {column for _, column in pairs}
        for column, entry in enumerate(found):
            if column not in taken:
                self.numbered += 1
                box = np.array(entry.box)
                track = _Track(self.numbered, entry, box, time, time)
                track.side = self._side(track)
                self.tracks.append(track)
                result[column] = replace(entry, identity=self.numbered)
        self.tracks = [
            track
            for track in self.tracks
            if time - track.seen <= (PATIENCE if track.hits >= BIRTH else PATIENCE / 3) and _inside(track.at(time))
        ]
        return result

    def current(self, time: float) -> list[Detection]:
        """Where the tracks are now that were found, or whose points were followed, lately."""
        return [
            replace(track.found, box=tuple(np.clip(track.at(time), 0, 1).tolist()), identity=track.identity)
            for track in self.tracks
            if track.hits >= BIRTH and time - max(track.seen, track.time) <= PATIENCE / 3
        ]

    def counts(self) -> dict[str, int]:
        """``now`` in sight, ``in`` and ``out`` over the line, ``all`` that were ever followed for two detections."""
        now = sum(track.seen == max(t.seen for t in self.tracks) for track in self.tracks) if self.tracks else 0
        return {"now": now, "in": self.entered, "out": self.left, "all": self.confirmed}

    def _met(self, track: _Track, entry: Detection, time: float) -> None:
        box = np.array(entry.box)
        passed = time - track.seen
        if passed > 0:
            before = np.array(track.found.box)
            moved = (box[:2] + box[2:] - before[:2] - before[2:]) / 2 / passed
            track.speed = moved if track.hits == 1 else MEMORY * track.speed + (1 - MEMORY) * moved
        track.found, track.box, track.time, track.seen = entry, box, time, time
        track.hits += 1
        if track.hits == BIRTH:
            self.confirmed += 1
        self._cross(track)

    def _side(self, track: _Track) -> int:
        past = (track.box[1] + track.box[3]) / 2 - self.line
        is_near = bool(track.side) and abs(past) < PAST * (track.box[3] - track.box[1])
        return track.side if is_near else 1 if past >= 0 else -1

    def _cross(self, track: _Track) -> None:
        side = self._side(track)
        if track.side and side != track.side:
            if side > 0:
                self.entered += 1
            else:
                self.left += 1
        track.side = side

    def _follow(self, before: Array, now: Array, time: float) -> None:
        """Each box moves by the median of what its points moved, and grows as they part."""
        import cv2

        height, width = now.shape
        scale = np.array([height, width, height, width], np.float64)
        starts, owners = [], []
        for number, track in enumerate(self.tracks):
            top, left, bottom, right = np.clip(track.box * scale, 0, scale - 1).astype(int)
            if bottom - top < 4 or right - left < 4:
                continue
            points = cv2.goodFeaturesToTrack(before[top:bottom, left:right], POINTS, 0.02, 3)
            if points is not None:
                starts.append(points.reshape(-1, 2) + np.array([left, top], np.float32))
                owners.extend([number] * len(points))
        if not starts:
            return
        origins = np.concatenate(starts).astype(np.float32)
        ends, ok, _ = cv2.calcOpticalFlowPyrLK(before, now, origins[:, None], None, winSize=(9, 9), maxLevel=3)
        back, ok_back, _ = cv2.calcOpticalFlowPyrLK(now, before, ends, None, winSize=(9, 9), maxLevel=3)
        there, home = ends[:, 0], back[:, 0]
        good = (ok[:, 0] == 1) & (ok_back[:, 0] == 1) & (np.abs(home - origins).max(axis=1) < 1.0)
        belongs = np.array(owners)
        for number, track in enumerate(self.tracks):
            mine = good & (belongs == number)
            if mine.sum() < LEAST_POINTS:
                continue
            shift = np.median(there[mine] - origins[mine], axis=0)[::-1] / (height, width)
            spread_before = np.linalg.norm(origins[mine] - origins[mine].mean(axis=0), axis=1)
            spread_now = np.linalg.norm(there[mine] - there[mine].mean(axis=0), axis=1)
            grown = float(np.clip(np.median(spread_now / np.maximum(spread_before, 1e-3)), 0.9, 1.1))
            center = (track.box[:2] + track.box[2:]) / 2 + shift
            half = (track.box[2:] - track.box[:2]) / 2 * grown
            passed = time - track.time
            if passed > 0:
                track.speed = MEMORY * track.speed + (1 - MEMORY) * shift / passed
            track.box, track.time = np.concatenate([center - half, center + half]), time
            self._cross(track)


def _pairs(boxes: Sequence[Array], known: Sequence[Detection], found: Sequence[Detection]) -> list[tuple[int, int]]:
    """Tracks and detections that belong together, the nearest first; each at most once, only of one class."""
    if not boxes or not found:
        return []
    first, second = np.array(boxes), np.array([entry.box for entry in found])
    near = overlaps(first, second)
    centers = (first[:, None, :2] + first[:, None, 2:] - second[None, :, :2] - second[None, :, 2:]) / 2
    sides = np.maximum((first[:, 2:] - first[:, :2])[:, None], (second[:, 2:] - second[:, :2])[None])
    apart = np.abs(centers / np.maximum(sides, 1e-6)).max(axis=-1)
    likeness = np.where(near >= OVERLAP, 1 + near, np.where(apart <= REACH, 1 - apart / (2 * REACH), 0.0))
    for row, entry in enumerate(known):
        for column, other in enumerate(found):
            if entry.label != other.label:
                likeness[row, column] = 0.0
    result, rows, columns = [], set(), set()
    for place in np.argsort(-likeness, axis=None, kind="stable"):
        row, column = divmod(int(place), len(found))
        if likeness[row, column] <= 0:
            break
        if row not in rows and column not in columns:
            rows.add(row)
            columns.add(column)
            result.append((row, column))
    return result


def _inside(box: Array) -> bool:
    """Whether a box still has its center in the frame, or nearly so."""
    center = (box[:2] + box[2:]) / 2
    return bool(np.all((center > -0.1) & (center < 1.1)))


def _sight(pixels: Array) -> Array:
    """A small gray picture of a frame."""
    import cv2

    height, width = pixels.shape[:2]
    factor = max(1, -(-max(height, width) // SIGHT))
    small = resized_nearest(pixels, height // factor, width // factor) if factor > 1 else pixels
    gray: Array = cv2.cvtColor(np.ascontiguousarray(small), cv2.COLOR_RGB2GRAY)
    return gray
