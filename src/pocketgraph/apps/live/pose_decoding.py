"""People out of the maps of OpenPose: peaks of parts, joined by the fields that point along limbs.

Cao et al., "Realtime Multi-Person 2D Pose Estimation using Part Affinity Fields", in the order of tf-pose-estimation:
19 maps of parts (COCO's 18 and the background), then 38 of the fields (x and y of 19 limbs).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pocketgraph.apps.detections import Detection

if TYPE_CHECKING:
    from pocketgraph.graph.tensor import Array

PARTS = (
    "nose", "neck", "right shoulder", "right elbow", "right wrist", "left shoulder", "left elbow", "left wrist",
    "right hip", "right knee", "right ankle", "left hip", "left knee", "left ankle", "right eye", "left eye",
    "right ear", "left ear",
)  # fmt: skip
LIMBS = (
    (1, 2, 12), (1, 5, 20), (2, 3, 14), (3, 4, 16), (5, 6, 22), (6, 7, 24), (1, 8, 0), (8, 9, 2), (9, 10, 4),
    (1, 11, 6), (11, 12, 8), (12, 13, 10), (1, 0, 28), (0, 14, 30), (14, 16, 34), (0, 15, 32), (15, 17, 36),
)  # fmt: skip
"""Two parts, and the first of the two maps of the field from one to the other."""
MAPS = 57
STEPS = 10
"""Places on a limb at which its field is read."""
LEAST_PARTS = 4  # of a body that are found


def people(maps: Array, least: float) -> tuple[list[Detection], list[tuple[float, float, float, float]]]:
    """The people in a picture.

    Args:
        maps: float [rows, columns, 57].
        least: the lowest value of a part's map that is a part.

    Returns:
        a detection for each person, with its parts as points, and all limbs as (x, y, x, y); as shares of the picture.
    """
    rows, columns, _ = maps.shape
    peaks = [_peaks(maps[..., part], least) for part in range(len(PARTS))]
    links: list[tuple[int, int, int, int, float]] = []
    for one, two, channel in LIMBS:
        links.extend(
            (one, i, two, j, score)
            for i, j, score in _joined(peaks[one], peaks[two], maps[..., 19 + channel :][..., :2])
        )
    bodies: list[dict[int, int]] = []
    for one, i, two, j, _ in links:
        mine = [body for body in bodies if body.get(one) == i or body.get(two) == j]
        if len(mine) > 1 and not set(mine[0]) & set(mine[1]):
            mine[0].update(mine[1])
            bodies.remove(mine[1])
        if mine:
            mine[0].setdefault(one, i)
            mine[0].setdefault(two, j)
        else:
            bodies.append({one: i, two: j})
    found: list[Detection] = []
    bones: list[tuple[float, float, float, float]] = []
    for body in bodies:
        if len(body) < LEAST_PARTS:
            continue
        places = {
            part: ((peaks[part][i][1] + 0.5) / columns, (peaks[part][i][0] + 0.5) / rows) for part, i in body.items()
        }
        x, y = zip(*places.values(), strict=True)
        score = float(np.mean([peaks[part][i][2] for part, i in body.items()]))
        found.append(
            Detection((min(y), min(x), max(y), max(x)), min(score, 1.0), "person", None, tuple(places.values()))
        )
        bones.extend((*places[one], *places[two]) for one, two, _ in LIMBS if one in places and two in places)
    return found, bones


def _peaks(heat: Array, least: float) -> list[tuple[int, int, float]]:
    """Row, column and value of the places that are over ``least`` and not under any place beside them."""
    rows, columns = heat.shape
    padded = np.pad(heat, 1, constant_values=-np.inf)
    around = np.max([padded[y : y + rows, x : x + columns] for y in range(3) for x in range(3)], axis=0)
    return [
        (int(y), int(x), float(heat[y, x]))
        for y, x in zip(*np.nonzero((heat >= least) & (heat == around)), strict=True)
    ]


def _joined(
    one: list[tuple[int, int, float]], two: list[tuple[int, int, float]], limb_field: Array
) -> list[tuple[int, int, float]]:
    """Pairs of parts that a limb's field joins, the surest first, each part at most once."""
    scored = []
    for i, (y0, x0, _) in enumerate(one):
        for j, (y1, x1, _) in enumerate(two):
            length = float(np.hypot(y1 - y0, x1 - x0))
            if length == 0:
                continue
            ys = np.rint(np.linspace(y0, y1, STEPS)).astype(int)
            xs = np.rint(np.linspace(x0, x1, STEPS)).astype(int)
            along = limb_field[ys, xs] @ np.array([(x1 - x0) / length, (y1 - y0) / length])
            if (along > 0.05).sum() >= 0.7 * STEPS:
                scored.append((float(along.mean()), i, j))
    found: list[tuple[int, int, float]] = []
    for score, i, j in sorted(scored, reverse=True):
        if all(i != a and j != b for a, b, _ in found):
            found.append((i, j, score))
    return found
