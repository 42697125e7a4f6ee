"""A layered layout: producers above their readers, few crossings, straight long edges.

Sugiyama, Tagawa and Toda's method (1981): ranks by longest path, order within ranks by barycenters, and places by least
squares: each rank's places are the nearest to the means of their neighbours that keep the order and the gaps (pool
adjacent violators).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from pocketgraph.graph.groups import DisjointSets, by_key

ROW_GAP = 46  # pixels between ranks
ITEM_GAP = 26  # pixels between neighbours of a rank
BEND_GAP = 14  # pixels beside an edge that passes through a rank
WIDEST = 48  # items of a rank; more go into a rank below
BENDS_PER_ITEM = 3  # how many bends edges may have, together; the longest edges get none
MOST_BESIDE = 64  # bends in a rank; further edges pass behind its items
SMALL = 1500  # items and bends for which sweeps are cheap
PICTURE = 1.6  # width by height to which unconnected pieces are packed
STRAIGHT = 8.0  # how much more the place of a bend weighs than that of an item


class GraphLayout(NamedTuple):
    """Where things are, in pixels.

    Attributes:
        x, y: the centre of each item.
        routes: for each edge, the places of its bends from source to target, as x, y, x, y…
        width, height: of the whole.
    """

    x: list[int]
    y: list[int]
    routes: list[list[int]]
    width: int
    height: int


def layered(sizes: Sequence[tuple[int, int]], edges: Sequence[tuple[int, int]]) -> GraphLayout:
    """Lays out a graph, one with cycles too; pieces without edges between them stand side by side.

    Args:
        sizes: width and height of each item, in pixels.
        edges: pairs of items, from and to.
    """
    x, y = [0] * len(sizes), [0] * len(sizes)
    routes: list[list[int]] = [[] for _ in edges]
    pieces = _pieces(len(sizes), edges)
    laid = [_piece(sizes, edges, items, numbers) for items, numbers in pieces]
    area = sum((w + ITEM_GAP) * (h + ROW_GAP) for *_, w, h in laid)
    shelf = max([w for *_, w, _ in laid] + [math.sqrt(area * PICTURE)], default=0)
    left = top = row = right = 0.0
    for (items, numbers), (xs, ys, bends, width, height) in zip(pieces, laid, strict=True):
        if left and left + width > shelf:
            left, top, row = 0.0, top + row + ROW_GAP, 0.0
        for item, px, py in zip(items, xs, ys, strict=True):
            x[item], y[item] = round(left + px), round(top + py)
        for number, points in zip(numbers, bends, strict=True):
            routes[number] = [round(value) for px, py in points for value in (left + px, top + py)]
        left += width + ITEM_GAP
        right, row = max(right, left - ITEM_GAP), max(row, height)
    return GraphLayout(x, y, routes, math.ceil(right), math.ceil(top + row))


def _pieces(count: int, edges: Sequence[tuple[int, int]]) -> list[tuple[list[int], list[int]]]:
    """The connected pieces, the largest first: their items and the numbers of their edges."""
    joined = DisjointSets(range(count))
    for a, b in edges:
        joined.join(a, b)
    found: dict[int, tuple[list[int], list[int]]] = {joined.find(items[0]): (items, []) for items in joined.groups()}
    for number, (a, _) in enumerate(edges):
        found[joined.find(a)][1].append(number)
    return sorted(found.values(), key=lambda piece: -len(piece[0]))


_Points = list[tuple[float, float]]


def _piece(
    sizes: Sequence[tuple[int, int]], edges: Sequence[tuple[int, int]], items: list[int], numbers: list[int]
) -> tuple[list[float], list[float], list[_Points], float, float]:
    """Lays out one connected piece: centres, bends of each edge, width and height."""
    place = {item: number for number, item in enumerate(items)}
    count = len(items)
    if count == 1:
        width, height = sizes[items[0]]
        return [width / 2], [height / 2], [[] for _ in numbers], width, height
    pairs = [(place[edges[number][0]], place[edges[number][1]]) for number in numbers]
    order, is_back = _acyclic(count, pairs)
    forward = [(b, a) if back else (a, b) for (a, b), back in zip(pairs, is_back, strict=True)]
    rank = _ranks(count, forward, order)
    chains, ranks = _with_bends(count, forward, rank)
    below: list[list[int]] = [[] for _ in range(len(ranks))]
    above: list[list[int]] = [[] for _ in range(len(ranks))]
    for chain in chains:
        for a, b in pairwise(chain):
            below[a].append(b)
            above[b].append(a)
    rows: list[list[int]] = [[] for _ in range(max(ranks) + 1)]
    for vertex in [*order, *range(count, len(ranks))]:
        rows[ranks[vertex]].append(vertex)
    _fewer_crossings(rows, above, below, 12 if len(ranks) < SMALL else 6)
    wide = [float(sizes[item][0]) for item in items] + [0.0] * (len(ranks) - count)
    x = _places(rows, above, below, wide, count, 12 if len(ranks) < SMALL else 6)
    y, top = [0.0] * len(ranks), 0.0
    for row in rows:
        height = max((sizes[items[v]][1] for v in row if v < count), default=0)
        for vertex in row:
            y[vertex] = top + height / 2
        top += height + ROW_GAP
    least = min(x[v] - wide[v] / 2 for v in range(len(ranks)))
    most = max(x[v] + wide[v] / 2 for v in range(len(ranks)))
    x = [value - least for value in x]
    bends = []
    for chain, back in zip(chains, is_back, strict=True):
        points = [(x[v], y[v]) for v in chain[1:-1]]
        bends.append(points[::-1] if back else points)
    return x[:count], y[:count], bends, most - least, top - ROW_GAP


def _acyclic(count: int, pairs: Sequence[tuple[int, int]]) -> tuple[list[int], list[bool]]:
    """The items in an order, and which edges go against it: those that close a cycle."""
    waits = [0] * count
    readers: list[list[int]] = [[] for _ in range(count)]
    for a, b in pairs:
        if a != b:
            waits[b] += 1
            readers[a].append(b)
    order: list[int] = []
    position = [-1] * count
    ready = [item for item in range(count - 1, -1, -1) if not waits[item]]
    next_forced = 0
    while len(order) < count:
        if not ready:
            # Only cycles are left. The first item that something has reached already is where one is entered.
            while position[next_forced] >= 0:
                next_forced += 1
            ready.append(next_forced)
        item = ready.pop()
        if position[item] >= 0:
            continue
        position[item] = len(order)
        order.append(item)
        for reader in readers[item]:
            waits[reader] -= 1
            if waits[reader] == 0 and position[reader] < 0:
                ready.append(reader)
    return order, [position[a] > position[b] for a, b in pairs]


def _ranks(count: int, edges: Sequence[tuple[int, int]], order: Sequence[int]) -> list[int]:
    """The longest way from a source to each item; what feeds a late reader just above it, wide ranks split."""
    readers: list[list[int]] = [[] for _ in range(count)]
    sources = [0] * count
    for a, b in edges:
        if a != b:
            readers[a].append(b)
            sources[b] += 1
    rank = [0] * count
    for item in order:
        for reader in readers[item]:
            rank[reader] = max(rank[reader], rank[item] + 1)
    for item in reversed(order):
        if readers[item] and sources[item] <= len(readers[item]):  # edges do not get longer by it, together
            rank[item] = min(rank[reader] for reader in readers[item]) - 1
    held = by_key((rank[item], item) for item in order)
    shift = 0
    for level in sorted(held):
        for number, item in enumerate(held[level]):
            rank[item] = level + shift + number // WIDEST
        shift += (len(held[level]) - 1) // WIDEST
    first = min(rank)
    return [value - first for value in rank]


def _with_bends(count: int, edges: Sequence[tuple[int, int]], rank: Sequence[int]) -> tuple[list[list[int]], list[int]]:
    """Each edge as a chain of vertices, one in every rank that it passes, and the rank of each vertex."""
    ranks = list(rank)
    chains: list[list[int]] = [[a, b] for a, b in edges]
    left = BENDS_PER_ITEM * count + 500
    passing = [0] * (max(rank) + 1)
    for number in sorted(range(len(edges)), key=lambda n: rank[edges[n][1]] - rank[edges[n][0]]):
        a, b = edges[number]
        span = rank[b] - rank[a]
        if span < 2 or max(passing[rank[a] + 1 : rank[b]]) >= MOST_BESIDE:
            continue
        left -= span - 1
        if left < 0:
            break
        for level in range(rank[a] + 1, rank[b]):
            passing[level] += 1
        bends = range(len(ranks), len(ranks) + span - 1)
        ranks.extend(range(rank[a] + 1, rank[b]))
        chains[number] = [a, *bends, b]
    return chains, ranks


def _fewer_crossings(rows: list[list[int]], above: list[list[int]], below: list[list[int]], sweeps: int) -> None:
    """Sorts each row by the mean place of its neighbours, downwards and upwards in turn."""
    spot = [0.0] * len(above)
    for row in rows:
        _note(row, spot)
    for sweep in range(sweeps):
        neighbours = above if sweep % 2 == 0 else below
        for row in rows if sweep % 2 == 0 else reversed(rows):
            if len(row) < 2:
                continue
            key = {v: sum(spot[n] for n in near) / len(near) if (near := neighbours[v]) else spot[v] for v in row}
            row.sort(key=key.__getitem__)
            _note(row, spot)


def _note(row: list[int], spot: list[float]) -> None:
    scale = 1.0 / max(len(row), 1)
    for number, vertex in enumerate(row):
        spot[vertex] = (number + 0.5) * scale


def _places(
    rows: list[list[int]], above: list[list[int]], below: list[list[int]], wide: list[float], count: int, sweeps: int
) -> list[float]:
    """The horizontal centre of each vertex."""
    x = [0.0] * len(above)
    offsets: list[list[float]] = []
    for row in rows:
        at, steps = 0.0, []
        for number, vertex in enumerate(row):
            if number:
                before = row[number - 1]
                gap = ITEM_GAP if vertex < count and before < count else BEND_GAP
                at += wide[before] / 2 + gap + wide[vertex] / 2
            steps.append(at)
        offsets.append(steps)
        for vertex, step in zip(row, steps, strict=True):
            x[vertex] = step - at / 2
    for sweep in range(sweeps):
        last = sweep >= sweeps - 2
        numbers = range(len(rows)) if sweep % 2 == 0 else range(len(rows) - 1, -1, -1)
        for number in numbers:
            row, steps = rows[number], offsets[number]
            wanted, weights = [], []
            for vertex, step in zip(row, steps, strict=True):
                near = above[vertex] + below[vertex] if last else (above if sweep % 2 == 0 else below)[vertex]
                near = near or above[vertex] or below[vertex]
                aim = sum(x[n] for n in near) / len(near) if near else x[vertex]
                wanted.append(aim - step)
                weights.append(STRAIGHT if vertex >= count else 1.0 + 0.2 * len(near))
            for vertex, step, value in zip(row, steps, _increasing(wanted, weights), strict=True):
                x[vertex] = value + step
    return x


def _increasing(wanted: list[float], weights: list[float]) -> list[float]:
    """The nearest numbers that do not decrease (weighted least squares, pool adjacent violators)."""
    blocks: list[list[float]] = []  # mean, weight, how many
    for value, weight in zip(wanted, weights, strict=True):
        blocks.append([value, weight, 1])
        while len(blocks) > 1 and blocks[-2][0] > blocks[-1][0]:
            mean, heavy, many = blocks.pop()
            last = blocks[-1]
            last[0] = (last[0] * last[1] + mean * heavy) / (last[1] + heavy)
            last[1] += heavy
            last[2] += many
    return [block[0] for block in blocks for _ in range(int(block[2]))]
