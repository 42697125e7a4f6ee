"""Windows, proposals, cascades, spectrograms, neighbours, steps: each on data whose answer is known."""

import sys

import numpy as np
import pytest

from pocketgraph.apps.patterns import neighbours
from pocketgraph.apps.patterns.cascade import Cascade, wake_word
from pocketgraph.apps.patterns.neighbours import Neighbours
from pocketgraph.apps.patterns.signals import spectrogram_picture
from pocketgraph.apps.patterns.sliding_windows import PictureWindow, classified, proposals, windows
from pocketgraph.apps.patterns.stepwise_sequence import Stepper
from pocketgraph.errors import MissingExtraError, UsageError
from pocketgraph.graph.text_format import parse


def scene() -> np.ndarray:
    """A gray picture with a red square at (20..60, 100..140)."""
    picture = np.full((120, 200, 3), 90, np.uint8)
    picture[20:60, 100:140] = (250, 0, 0)
    picture[20:60:8, 100:140] = 0  # something with edges
    return picture


def redness(batch: np.ndarray) -> np.ndarray:
    """Two scores, of the background and of red."""
    red = np.clip((batch[..., 0] - batch[..., 1]).mean(axis=(1, 2)) * 1.1, 0, 1)
    return np.stack([1 - red, red], axis=1)


def test_windows_cover_a_picture() -> None:
    found = windows(120, 200, 40, scales=(1, 2))
    seen = np.zeros((120, 200), bool)
    for place in found:
        assert 0 <= place.top < place.bottom <= 120
        assert 0 <= place.left < place.right <= 200
        seen[place.top : place.bottom, place.left : place.right] = True
    assert seen.all()
    assert {place.bottom - place.top for place in found} == {40, 80}
    assert windows(30, 30, 40) == []
    with pytest.raises(UsageError, match="cannot be"):
        windows(120, 200, 0)


def test_a_slid_classifier_finds_where_it_is() -> None:
    asked = []

    def scores(batch: np.ndarray) -> np.ndarray:
        asked.append(len(batch))
        return redness(batch)

    places = windows(120, 200, 40, stride=0.25)
    (found,) = classified(
        scene(), places, scores, (16, 16), batch=8, labels=["nothing", "red"], background=0, overlap=0.1
    )
    np.testing.assert_allclose(found.box, (20 / 120, 100 / 200, 60 / 120, 140 / 200))
    assert found.label == "red"
    assert max(asked) == 8
    assert sum(asked) == len(places)


def test_proposals_are_where_the_edges_are() -> None:
    best = proposals(scene(), 5)
    first = best[0]
    assert abs(first.top - 20) <= 12
    assert abs(first.left - 100) <= 12
    assert abs(first.bottom - 60) <= 12
    assert abs(first.right - 140) <= 12
    assert proposals(np.full((64, 64, 3), 7, np.uint8)) == []
    assert isinstance(first, PictureWindow)


def test_a_cascade_asks_the_large_model_only_when_unsure() -> None:
    cascade: Cascade[float, str] = Cascade(
        lambda x: ("yes" if x > 0.5 else "no", abs(2 * x - 1)), lambda x: "large", sure=0.6
    )
    assert [cascade(x) for x in (0.95, 0.02, 0.55)] == ["yes", "no", "large"]
    assert cascade.latencies.passed_on == pytest.approx(1 / 3)
    assert set(cascade.latencies.percentiles()) == {"p50", "p90", "p99"}
    woken: Cascade[str, str] = Cascade(lambda x: (x, 0.9), lambda x: "understood", wakes=wake_word("computer"))
    assert [woken(x) for x in ("hello", "computer")] == ["hello", "understood"]
    with pytest.raises(UsageError, match="from 0 to 1"):
        Cascade(lambda x: (x, 1.0), lambda x: x, sure=2)


def test_a_tone_is_at_its_frequency() -> None:
    rate, hertz = 100.0, 12.5
    time = np.arange(1000) / rate
    signal = np.stack([np.sin(2 * np.pi * hertz * time), np.zeros(1000), np.ones(1000)], axis=1)
    found = spectrogram_picture(signal, rate, window=0.64, stride=0.1)
    assert found.shape[2] == 3
    assert found.dtype == np.float32
    assert (found[:, :, 0].argmax(axis=1) == round(hertz * 64 / rate)).all()
    assert (found[:, :, 2].argmax(axis=1) == 0).all()
    with pytest.raises(UsageError, match="fewer than a window"):
        spectrogram_picture(signal[:10], rate, window=0.64)


@pytest.mark.parametrize("exact", [True, False])
def test_neighbours(exact: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not exact:
        pytest.importorskip("hnswlib", reason="hnswlib is not installed (pocketgraph[neighbours])")
    rng = np.random.default_rng(0)
    table = rng.normal(size=(500, 16))
    found = Neighbours(table, [f"n{i % 3}" for i in range(500)], exact=exact)
    asked = table[:40] + rng.normal(0, 0.01, (40, 16))
    places, cosines = found.nearest(asked, 3)
    assert (places[:, 0] == np.arange(40)).all()
    unit = table / np.linalg.norm(table, axis=1, keepdims=True)
    wanted = np.sort(asked / np.linalg.norm(asked, axis=1, keepdims=True) @ unit.T, axis=1)[:, ::-1][:, :3]
    np.testing.assert_allclose(cosines, wanted, atol=1e-5)
    assert found.classify(table[4], 1)[0] == ("n1", pytest.approx(1.0))
    with pytest.raises(UsageError, match="16"):
        found.nearest(np.zeros(3))


def test_very_many_neighbours_are_searched_in_a_graph(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("hnswlib", reason="hnswlib is not installed (pocketgraph[neighbours])")
    monkeypatch.setattr(neighbours, "MOST_EXACT", 1999)
    table = np.random.default_rng(1).normal(size=(2000, 12))
    names = [f"n{i}" for i in range(2000)]
    graph, exact = Neighbours(table, names), Neighbours(table, names, exact=True)
    assert graph._index is not None
    assert exact._index is None
    for count in (1, 10, 300):  # more than it looks at without being told
        found, wanted = (some.nearest(table[:50], count)[0] for some in (graph, exact))
        assert found.shape == wanted.shape == (50, count)
        shares = [len(set(a) & set(b)) / count for a, b in zip(found, wanted, strict=True)]
        assert np.mean(shares) > 0.95
    everything, cosines = graph.nearest(table[7], 5000)
    assert everything.shape == (1, 2000)
    assert (np.diff(cosines) <= 1e-6).all()


def test_neighbours_that_cannot_be(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UsageError, match="do not go together"):
        Neighbours(np.zeros((2, 3)), ["one"])
    with pytest.raises(UsageError, match="not finite"):
        Neighbours(np.full((1, 3), np.nan), ["one"])
    monkeypatch.setitem(sys.modules, "hnswlib", None)
    with pytest.raises(MissingExtraError, match="hnswlib"):
        Neighbours(np.ones((2, 3)), ["one", "two"], exact=False)


def test_a_state_goes_from_step_to_step() -> None:
    graph = parse(
        """
        x = Placeholder(dtype=float, shape=[1])
        h = Placeholder(dtype=float, shape=[1])
        after = AddV2(x, h, T=float)
        y = Mul(after, after, T=float)
        """
    )
    step = Stepper(graph, ["y"], {"h": "after"})
    assert [float(step({"x": [x]})[0][0]) for x in (1, 2, 3)] == [1, 9, 36]
    step.reset()
    assert float(step({"x": [5]})[0][0]) == 25
    assert float(Stepper(graph, ["y"], {"h": "after"}, start={"h": [2]})({"x": [1]})[0][0]) == 9
    opened = parse("h = Placeholder(dtype=float, shape=[?])\ny = Relu(h, T=float)")
    with pytest.raises(UsageError, match="open shape"):
        Stepper(opened, ["y"], {"h": "y"})
