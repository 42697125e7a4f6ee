"""Places of what is true in a vector as one step: NumPy's and the single nodes' results, and what stays as it is."""

import pathlib
from typing import Any

import numpy as np
import pytest

from pocketgraph.graph.text_format import parse
from pocketgraph.runtime import Session
from pocketgraph.runtime.engines import fused_places
from pocketgraph.runtime.profiling.profile import StepTrace

GRAPH = """
    least = Const(float 0.3)
    flat = Const(int32 [-1])
    zero = Const(int32 0)
    scores = Placeholder(dtype=float)
    rows = Placeholder(dtype=float)
    above = Greater(scores, least, T=float)
    where = Where(above, T=bool)
    {laid}
    keep = Cast(laid, SrcT=int64, DstT={kind})
    best = GatherV2(rows, keep, zero, Tparams=float, Tindices={kind}, Taxis=int32)
"""
RESHAPE = "laid = Reshape(where, flat, T=int64, Tshape=int32)"
SQUEEZE = "laid = Squeeze(where, T=int64, squeeze_dims=[{axis}])"
SCORES = np.array([0.1, 0.5, np.nan, 0.3, 0.9, np.inf], np.float32)
ROWS = np.arange(24, dtype=np.float32).reshape(6, 4)


def members_of(monkeypatch: pytest.MonkeyPatch) -> list[set[str]]:
    """The nodes of each part that is found from now on."""
    found: list[set[str]] = []
    whole = fused_places.fused_places

    def noted(*arguments: Any) -> Any:
        made = whole(*arguments)
        found.extend(set(part.members) for part in made)
        return made

    monkeypatch.setattr(fused_places, "fused_places", noted)
    return found


@pytest.mark.parametrize("laid", [RESHAPE, SQUEEZE.format(axis=1), SQUEEZE.format(axis=-1)])
@pytest.mark.parametrize("kind", ["int32", "int64"])
def test_is_one_step(laid: str, kind: str, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = members_of(monkeypatch)
    with Session(parse(GRAPH.format(laid=laid, kind=kind)), cache_dir=tmp_path) as session:
        for scores in (SCORES, SCORES[::-1].copy(), np.zeros(6, np.float32), SCORES[:0]):
            keep, best = session.run(["keep", "best"], {"scores": scores, "rows": ROWS})
            expected = np.flatnonzero(scores > np.float32(0.3))
            assert (keep.dtype, keep.tolist()) == (np.dtype(kind), expected.tolist())
            np.testing.assert_array_equal(best, ROWS[expected])
    wanted = {"where", "laid", "keep"} if kind == "int32" else {"where", "laid"}
    assert found
    assert all(members == wanted for members in found)


def test_a_matrix_runs_node_by_node(tmp_path: pathlib.Path) -> None:
    """Both places of each row, one after the other; a Squeeze refuses them, and is the one that says so."""
    scores = np.array([[0.1, 0.5], [0.9, 0.2]], np.float32)
    with Session(parse(GRAPH.format(laid=RESHAPE, kind="int32")), cache_dir=tmp_path) as session:
        for _ in range(20):
            assert session.run("keep", {"scores": scores})[0].tolist() == [0, 1, 1, 0]
            assert session.run("keep", {"scores": SCORES})[0].tolist() == [1, 4, 5]
    squeezed = parse(GRAPH.format(laid=SQUEEZE.format(axis=1), kind="int32"))
    with Session(squeezed, cache_dir=tmp_path) as session, pytest.raises(Exception, match="node 'laid'"):
        session.run("keep", {"scores": scores})


@pytest.mark.parametrize("options", [{"memory_limit": 1 << 20}, {"without": ["fused_places"]}])
def test_looked_at_node_by_node(options: Any, tmp_path: pathlib.Path) -> None:
    with Session(parse(GRAPH.format(laid=RESHAPE, kind="int32")), cache_dir=tmp_path, **options) as session:
        assert session.run("keep", {"scores": SCORES})[0].tolist() == [1, 4, 5]
        trace = StepTrace()
        assert session.run("keep", {"scores": SCORES}, trace=trace)[0].tolist() == [1, 4, 5]
        assert {"where", "laid", "keep"} <= {row.name for row in trace.nodes}


def test_what_others_see_stays(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = members_of(monkeypatch)
    with Session(parse(GRAPH.format(laid=RESHAPE, kind="int32")), cache_dir=tmp_path) as session:
        feeds = {"scores": SCORES}
        where, keep = session.run(["where", "keep"], feeds)
        assert (where.tolist(), keep.tolist()) == ([[1], [4], [5]], [1, 4, 5])
        assert not found
        laid, keep = session.run(["laid", "keep"], feeds)
        assert (laid.dtype, laid.tolist(), keep.tolist()) == (np.int64, [1, 4, 5], [1, 4, 5])
        assert found == [{"where", "laid"}]
