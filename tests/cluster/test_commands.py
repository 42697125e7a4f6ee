"""The five commands with --cluster: one machine's bytes and figures; calls that stop, clusters that are not there."""

import os
import pathlib
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from PIL import Image

import pocketgraph
from colours import base, colour_photos
from command_line import call
from pocketgraph.apps.embeddings import embed
from pocketgraph.apps.retraining.tool import retrain
from pocketgraph.apps.training_data.photo_checks import check_dataset
from pocketgraph.cluster import connected
from pocketgraph.formats import save
from quantize_nets import wide_graph

ray = pytest.importorskip("ray", reason="Ray is not installed (pocketgraph[cluster])")


@pytest.fixture(scope="module")
def photos(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    folder = colour_photos(tmp_path_factory.mktemp("photos") / "colours")
    (folder / "green" / "broken.png").write_bytes(b"no picture")
    return folder


@pytest.fixture(scope="module")
def two_workers() -> Iterator[None]:
    with connected("local:2"):
        yield


def apart(tmp: pathlib.Path, work: Callable[[], Any]) -> Any:
    """What work gives outside of the connection that is open."""
    from pocketgraph.cluster import connection

    token = connection._connection.set(None)
    try:
        return work()
    finally:
        connection._connection.reset(token)


@pytest.mark.usefixtures("two_workers")
def test_embed_and_dataset_check_and_retrain(photos: pathlib.Path, tmp_path: pathlib.Path) -> None:
    notes: list[str] = []

    def all_of_them() -> tuple[Any, ...]:
        told: list[str] = []
        made = embed(base(), photos, notify=told.append)
        report = check_dataset(photos, base())
        retrained = retrain(base(), photos, notify=told.append)
        notes[:] = told
        weights = [np.asarray(retrained.head.weights), np.asarray(retrained.head.biases)]
        return made.names, made.vectors.tobytes(), report.as_json(), [array.tobytes() for array in weights], told

    shared = all_of_them()
    alone = apart(tmp_path, all_of_them)
    assert shared == alone
    assert any("broken.png" in note for note in notes)


@pytest.mark.usefixtures("two_workers")
def test_evaluate(photos: pathlib.Path, tmp_path: pathlib.Path) -> None:
    (photos / "green" / "broken.png").unlink(missing_ok=True)
    save(base(), tmp_path / "float.pb")
    quantized = apart(tmp_path, lambda: pocketgraph.quantize(base(), photos, float_share=0, widen=0, limit=10))
    quantized.save(tmp_path / "small.tflite")
    models = [tmp_path / "float.pb", base(), tmp_path / "small.tflite", quantized]

    def figures() -> list[dict[str, Any]]:
        rows = [verdict.as_dict() for verdict in pocketgraph.evaluate(models, photos)]
        return [{name: value for name, value in row.items() if name != "milliseconds"} for row in rows]

    assert figures() == apart(tmp_path, figures)


@pytest.mark.usefixtures("two_workers")
@pytest.mark.parametrize("how", [{}, {"ranges": "entropy"}])
def test_quantize_gives_the_same_bytes(how: dict[str, Any], tmp_path: pathlib.Path) -> None:
    graph = wide_graph()
    samples = np.random.default_rng(0).normal(size=(60, 64)).astype(np.float32)

    def made() -> bytes:
        return bytes(pocketgraph.quantize(graph, samples, limit=60, **how).to_bytes("tflite"))

    assert made() == apart(tmp_path, made)


@pytest.mark.slow
def test_a_call_that_is_interrupted_goes_on(tmp_path: pathlib.Path) -> None:
    folder = tmp_path / "photos"
    folder.mkdir()
    rng = np.random.default_rng(0)
    for number in range(3000):
        Image.fromarray(rng.integers(0, 256, (8, 8, 3), np.uint8)).save(folder / f"{number:04}.png")
    save(base(), tmp_path / "base.pb")
    cache = tmp_path / "cache"
    line = [sys.executable, "-m", "pocketgraph", "embed", str(tmp_path / "base.pb"), str(folder)]
    shared = [*line, "-o", str(tmp_path / "shared.npz"), "--cluster=local:2"]
    environment = {**os.environ, "POCKETGRAPH_CACHE": str(cache)}
    process = subprocess.Popen(shared, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    end = time.monotonic() + 120
    while not any(path.stat().st_size for path in cache.glob("cluster/*.journal")):
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < end
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=300)
    assert process.returncode not in (0, None)
    assert not (tmp_path / "shared.npz").exists()
    (journal,) = cache.glob("cluster/*.journal")
    assert journal.stat().st_size
    subprocess.run(shared, env=environment, check=True, capture_output=True, timeout=300)
    subprocess.run([*line, "-o", str(tmp_path / "alone.npz")], env=environment, check=True, capture_output=True)
    with np.load(tmp_path / "shared.npz") as ours, np.load(tmp_path / "alone.npz") as theirs:
        for name in theirs.files:
            assert np.array_equal(ours[name], theirs[name])
    assert not journal.exists()


HEAD = """
import sys
import ray
from ray.util.client.server.server import init_and_serve

handle = init_and_serve("127.0.0.1", int(sys.argv[1]), num_cpus=2, include_dashboard=False, logging_level="ERROR")
print("ready", flush=True)
sys.stdin.read()
"""


def test_a_cluster_is_reached_by_its_address(photos: pathlib.Path, tmp_path: pathlib.Path) -> None:
    pytest.importorskip("grpc", reason="Ray's client is not installed (pocketgraph[cluster])")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    line = [sys.executable, "-c", HEAD, str(port)]
    head = subprocess.Popen(line, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        assert head.stdout is not None
        assert head.stdout.readline() == "ready\n"
        save(base(), tmp_path / "base.pb")
        line = [sys.executable, "-m", "pocketgraph", "embed", str(tmp_path / "base.pb"), str(photos)]
        shared = [*line, "-o", str(tmp_path / "e.npz"), f"--cluster=ray://127.0.0.1:{port}"]
        subprocess.run(shared, check=True, capture_output=True, timeout=200)
        with np.load(tmp_path / "e.npz") as found:
            told: list[str] = []
            assert found["vectors"].tobytes() == embed(base(), photos, notify=told.append).vectors.tobytes()
    finally:
        head.kill()
        head.wait()


def test_no_cluster(photos: pathlib.Path, tmp_path: pathlib.Path, capsys: Any) -> None:
    ray.shutdown()
    save(base(), tmp_path / "base.pb")
    data = ("--data", photos)
    calls: dict[str, tuple[object, ...]] = {
        "embed": (tmp_path / "base.pb", photos, "-o", tmp_path / "e.npz"),
        "evaluate": (tmp_path / "base.pb", *data),
        "quantize": (tmp_path / "base.pb", "--calibrate", photos, "-o", tmp_path / "q.tflite"),
        "retrain": (tmp_path / "base.pb", "--image_dir", photos, "-o", tmp_path / "r.pb"),
    }
    for command, arguments in calls.items():
        assert call(command, *arguments, "--cluster=ray://127.0.0.1:1") == 1, command
        assert "there is no cluster" in capsys.readouterr().err
    assert call("dataset", "check", photos, "--cluster=nowhere") == 2
    assert "'nowhere' is no cluster; --cluster=local" in capsys.readouterr().err
    assert not [path for path in tmp_path.iterdir() if path.name != "base.pb"]
