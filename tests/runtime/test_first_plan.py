"""What the first plan of a plain frozen net costs: which modules it loads, and how often it walks through the nodes."""

import pathlib
import subprocess
import sys

import numpy as np
import pytest

from pocketgraph import Session, save
from pocketgraph.graph import Graph, Node, const
from pocketgraph.graph.dtype import FLOAT
from pocketgraph.graph.shape import Shape
from pocketgraph.runtime.planning.rewriting import idle_waits

LAYERS = 6


def frozen_net() -> Graph:
    """Convolutions as Keras's freezing leaves them: weights are read by Identity nodes, for which the output waits."""
    random = np.random.default_rng(0)
    nodes = [Node("x", "Placeholder", (), {"dtype": FLOAT, "shape": Shape((1, 16, 16, 32))})]
    reads, last = [], "x"
    conv = {"T": FLOAT, "strides": (1, 1, 1, 1), "padding": b"SAME", "data_format": b"NHWC"}
    for layer in range(LAYERS):
        weights, read = f"conv_{layer}/weights", f"conv_{layer}/read"
        nodes.append(const(weights, random.normal(0, 0.06, (3, 3, 32, 32)).astype(np.float32), FLOAT))
        nodes.append(Node(read, "Identity", (weights,), {"T": FLOAT}))
        nodes.append(Node(f"conv_{layer}", "Conv2D", (last, read), conv))
        nodes.append(Node(f"relu_{layer}", "Relu", (f"conv_{layer}",), {"T": FLOAT}))
        reads.append(f"^{read}")
        last = f"relu_{layer}"
    nodes.append(Node("NoOp", "NoOp", tuple(reads)))
    nodes.append(Node("y", "Identity", (last, "^NoOp"), {"T": FLOAT}))
    return Graph(nodes)


def test_a_first_plan_loads_few_modules(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "net.pb"
    save(frozen_net(), path)
    program = (
        "import sys, numpy\n"
        "import pocketgraph\n"
        f"session = pocketgraph.Session({str(path)!r}, cache_dir={str(tmp_path / 'cache')!r})\n"
        "session.run(['y'], {'x': numpy.ones((1, 16, 16, 32), 'f4')})\n"
        "print(*(name for name in sys.modules if name.startswith('pocketgraph') or name in ('graphlib', 'string')))\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    assert "pocketgraph.runtime.planning.planner" in loaded
    assert not loaded & {
        "graphlib",
        "pocketgraph.kernels.nn.convolution",
        "pocketgraph.litert.rewriting.skipped_pixels",
        "pocketgraph.litert.rewriting.tile_operations",
        "pocketgraph.runtime.planning.rewriting.function_inlining",
        "pocketgraph.runtime.planning.rewriting.noop_dropout",
        "pocketgraph.runtime.planning.session_variables",
        "string",
    }
    assert len(loaded) <= 160  # each takes 0.3 ms, from finding it to freeing it


def test_made_up_values_for_a_plain_net_load_nothing_that_freezes(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "net.pb"
    save(frozen_net(), path)
    program = (
        "import sys, numpy\n"
        "import pocketgraph\n"
        "from pocketgraph.runtime.feeding.synthetic_feeds import synthetic_feeds\n"
        f"with pocketgraph.Session({str(path)!r}, cache_dir={str(tmp_path / 'cache')!r}) as session:\n"
        "    found = session.run(['y'], synthetic_feeds(session.graph, ['y']))\n"
        "print(found[0].size, 'pocketgraph.freezing' in sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == [str(16 * 16 * 32), "False"]


def test_waits_in_a_graph_without_effects_are_dropped_without_looking_at_what_is_behind_them(
    monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path
) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("looked at the waits of each node")

    monkeypatch.setattr(idle_waits, "_Waits", refuse)
    x = np.linspace(-1, 1, 16 * 16 * 32, dtype=np.float32).reshape(1, 16, 16, 32)
    with Session(frozen_net(), cache_dir=tmp_path) as session:
        plan = session.plan(["y"], {"x": x})
    assert "drop_idle_waits" in plan.passes
    assert [part.runs_on for part in plan.parts] == ["litert"]
