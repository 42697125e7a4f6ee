"""Times the layout of `pocketgraph view` on flat graphs, beside other programs, and its page in a browser.

python benchmarks/view_layout.py [--nodes 5000] [--peers] [--browser]

--peers installs dagre, d3-dag and viz-js (Graphviz) of the versions below with npm into a scratch folder, and gives
each layout MOST seconds. --browser opens a page of as many nodes in Chromium (playwright), measures when the first
picture is there, and drags and zooms it.
"""

from __future__ import annotations

import argparse
import json
import pathlib
import random
import resource
import shutil
import signal
import subprocess
import tempfile
import time

from pocketgraph.graph import Graph, Node
from pocketgraph.graph.dtype import FLOAT
from pocketgraph.inspect.view.layered_layout import layered
from pocketgraph.inspect.view.page import as_html

VERSIONS = {"@dagrejs/dagre": "3.1.3", "d3-dag": "1.2.2", "@viz-js/viz": "3.31.0"}
MOST = 30  # seconds of processor of a layout by another program
FRAMES = 120
PEERS = {
    "dagre": """
const dagre = require("@dagrejs/dagre").default ?? require("@dagrejs/dagre");
const g = new dagre.graphlib.Graph(); g.setGraph({}); g.setDefaultEdgeLabel(() => ({}));
for (let i = 0; i < count; i++) g.setNode(String(i), { width: 120, height: 38 });
for (const [a, b] of edges) g.setEdge(String(a), String(b));
start(); dagre.layout(g); stop();""",
    "d3-dag": """
const d3 = require("d3-dag");
const made = d3.graph(), nodes = [];
for (let i = 0; i < count; i++) nodes.push(made.node(i));
for (const [a, b] of edges) made.link(nodes[a], nodes[b]);
const layout = d3.sugiyama().nodeSize([120, 38]).decross(d3.decrossTwoLayer()).coord(d3.coordSimplex());
start(); layout(made); stop();""",
    "viz-js (dot)": """
require("@viz-js/viz").instance().then((viz) => {
  const size = "[width=1.7 height=.5 fixedsize=true]";
  const text = "digraph {" + Array.from({ length: count }, (_, i) => `${i} ${size}`).join(";") + ";"
    + edges.map(([a, b]) => `${a}->${b}`).join(";") + "}";
  start(); viz.renderString(text, { format: "plain", engine: "dot" }); stop();
});""",
}
OPEN = """pocketgraph.state.graph.scopes.forEach((scope) => {
  if (!pocketgraph.state.opened.has(scope.number)) pocketgraph.toggle(scope.number);
})"""
DRAG = """(frames) => new Promise((done) => {
  const { state, draw } = pocketgraph, times = [];
  let last = performance.now(), at = 0, spent = 0;
  const zooms = [state.zoom, 0.1, 0.35, 1];
  const frame = (now) => {
    times.push(now - last); last = now;
    if (++at > frames) { done({ frames: times.slice(1), draw: spent / frames }); return; }
    state.zoom = zooms[Math.floor(zooms.length * (at - 1) / frames)];
    state.x = -((at * 37) % 2000) * state.zoom; state.y = -((at * 53) % 3000) * state.zoom;
    const start = performance.now(); draw(); spent += performance.now() - start;
    requestAnimationFrame(frame);
  };
  requestAnimationFrame(frame);
})"""


def graphs(count: int) -> dict[str, list[tuple[int, int]]]:
    """Edges by the kind of graph, the same in each run."""
    draw = random.Random(1)
    return {
        "two inputs, near": [(max(0, i - draw.randint(1, 6)), i) for i in range(1, count) for _ in range(2)],
        "two inputs, anywhere": [(draw.randrange(i), i) for i in range(1, count) for _ in range(2)],
        "chain": [(i - 1, i) for i in range(1, count)],
        "one source": [(0, i) for i in range(1, count)],
        "cycles": [(draw.randrange(count), draw.randrange(count)) for _ in range(2 * count)],
        "no edges": [],
    }


def ours(count: int, edges: list[tuple[int, int]]) -> tuple[float, str]:
    """Seconds of processor of our layout, the least of three, and the size of the picture."""
    best = float("inf")
    for _ in range(3):
        start = time.process_time()
        layout = layered([(120, 38)] * count, edges)
        best = min(best, time.process_time() - start)
    return best, f"{layout.width:,} x {layout.height:,}"


def theirs(folder: pathlib.Path, program: str, count: int, edges: list[tuple[int, int]]) -> str:
    """Seconds of processor of another program's layout, or what became of it."""
    once = sorted({(a, b) for a, b in edges if a != b})
    (folder / "graph.json").write_text(json.dumps([count, once]))
    script = folder / "run.cjs"
    script.write_text(
        'const [count, edges] = JSON.parse(require("fs").readFileSync("graph.json"));\nlet began = 0;\n'
        "const used = () => { const { user, system } = process.cpuUsage(); return (user + system) / 1e6; };\n"
        "const start = () => { began = used(); };\n"
        "const stop = () => console.log(used() - began);\n" + PEERS[program]
    )
    done = subprocess.run(
        ["node", "--stack-size=60000", "run.cjs"], cwd=folder, capture_output=True, text=True, preexec_fn=_limit
    )
    if done.returncode in (-signal.SIGXCPU, -signal.SIGKILL):
        return f">{MOST}"
    if done.returncode:
        lines = [line for line in done.stderr.splitlines() if "Error" in line]
        return (lines or [f"exit {done.returncode}"])[0].strip()[:24]
    return f"{float(done.stdout.split()[-1]):.2f}"


def _limit() -> None:
    resource.setrlimit(resource.RLIMIT_CPU, (MOST, MOST + 1))
    resource.setrlimit(resource.RLIMIT_STACK, (1 << 30, resource.RLIM_INFINITY))


def peers(folder: pathlib.Path) -> list[str]:
    """Installs the other programs and says which there are."""
    if shutil.which("npm") is None or shutil.which("node") is None:
        print("node and npm are not installed: no other programs")
        return []
    packages = [f"{name}@{version}" for name, version in VERSIONS.items()]
    subprocess.run(["npm", "install", "--silent", "--ignore-scripts", *packages], cwd=folder, check=True)
    return list(PEERS)


def in_browser(count: int) -> None:
    """Prints when the first picture is there, and frames a second while a page is dragged and zoomed."""
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if chromium is None:
        print("Chromium is not installed: no frames")
        return
    from playwright.sync_api import sync_playwright

    edges = graphs(count)["two inputs, near"]
    inputs: dict[int, list[str]] = {}
    for a, b in edges:
        inputs.setdefault(b, []).append(f"n{a}")
    odd = ("a", "bc", "def", "ghij", "klmno")  # names that do not repeat in a row
    name = {f"n{i}": f"{odd[(i * i // 7 + i) % 5]}{odd[i * 7 // 5 % 5]}{i}" for i in range(count)}
    nodes = [
        Node(name[f"n{i}"], "AddN" if i else "Placeholder", [name[ref] for ref in inputs.get(i, [])], {"T": FLOAT})
        for i in range(count)
    ]
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as started:
        path = pathlib.Path(folder, "page.html")
        start = time.perf_counter()
        path.write_text(as_html(Graph(nodes), "nodes"), "utf-8")
        print(f"page of {count:,} nodes: written in {time.perf_counter() - start:.2f} s")
        browser = started.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1600, "height": 1000})
        page.goto(path.as_uri())
        page.evaluate(OPEN)
        drawn = page.evaluate("pocketgraph.state.scene.boxes.filter((box) => box.kind === 0).length")
        first = page.evaluate("performance.getEntriesByName('first-contentful-paint')[0].startTime")
        found = page.evaluate(DRAG, FRAMES)
        browser.close()
    frames = sorted(found["frames"])
    print(f"{drawn:,} nodes drawn; first picture after {first:.0f} ms")
    print(
        f"dragging and zooming: {1000 * len(frames) / sum(frames):.0f} frames a second in the mean, "
        f"{1000 / frames[int(0.95 * len(frames))]:.0f} in the slowest 5 %; {found['draw']:.1f} ms of script a frame"
    )


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=5000)
    parser.add_argument("--peers", action="store_true", help="install and time dagre, d3-dag and viz-js")
    parser.add_argument("--browser", action="store_true", help="time the page in Chromium")
    parser.add_argument("--kinds", default="", help="the graphs to lay out, by commas; default: all")
    arguments = parser.parse_args()
    count = arguments.nodes
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(scratch)
        others = peers(folder) if arguments.peers else []
        heads = "".join(f"{name:>26}" for name in others)
        print(f"{'graph':24}{'nodes':>8}{'edges':>8}{'ours, s':>9}{heads}  pixels (ours)")
        for name, edges in graphs(count).items():
            if arguments.kinds and name.split(",")[-1].strip() not in arguments.kinds.split(","):
                continue
            seconds, size = ours(count, edges)
            cells = "".join(f"{theirs(folder, program, count, edges):>26}" for program in others)
            print(f"{name:24}{count:8,}{len(edges):8,}{seconds:9.2f}{cells}  {size}", flush=True)
    if arguments.browser:
        in_browser(count)


if __name__ == "__main__":
    main()
