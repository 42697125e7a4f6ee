"""A process that may start no more threads, as in a container with a limit, computes all the same."""

import pathlib
import threading

import numpy as np
import pytest

from pocketgraph import Session, Tensor, save
from pocketgraph.graph import const
from pocketgraph.graph.text_format import parse

GRAPH = """
    x = Placeholder(dtype=float, shape=[1,64])
    first = Placeholder(dtype=float)
    second = Placeholder(dtype=float)
    hidden = MatMul(x, first, T=float)
    y = MatMul(hidden, second, T=float)
"""


@pytest.mark.parametrize("at_once", ["first", "always"])
def test_no_thread_can_be_started(monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path, at_once: str) -> None:
    generator = np.random.default_rng(3)
    weights = {
        name: generator.standard_normal(shape).astype(np.float32)
        for name, shape in (("first", (64, 20_000)), ("second", (20_000, 100)))
    }
    graph = parse(GRAPH).map_nodes(
        lambda node: const(node.name, Tensor.from_numpy(weights[node.name])) if node.name in weights else node
    )
    save(graph, tmp_path / "model.pb")
    x = generator.standard_normal((1, 64)).astype(np.float32)
    wanted = x @ weights["first"] @ weights["second"]
    tried = []

    def refused(self: threading.Thread) -> None:
        tried.append(self.name)
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refused)
    for _ in range(2):
        with Session(tmp_path / "model.pb", cache_dir=tmp_path / "cache", check=at_once) as session:
            for _ in range(2):
                np.testing.assert_allclose(session.run("y", {"x": x})[0], wanted, rtol=1e-3, atol=1e-2)
    assert tried
