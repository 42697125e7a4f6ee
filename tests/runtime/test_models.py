"""Real models against TensorFlow's results, on the reference engine alone and on what the plan chooses."""

import json
from typing import Any

import numpy as np
import pytest

from pocketgraph.kernels import registry
from pocketgraph.runtime import Session
from pocketgraph.runtime.engines.compilation_units import STRUCTURAL
from support import assert_close, golden, model_dir, model_info, needs_shared

LOOPS_AND_STATE = (
    "mtcnn_blaueck", "aggregator_v1", "har_developershutt", "federated_graph", "rust_regression", "lucid_fixture",
    "faced_corrector", "mbti_model",
)  # fmt: skip


def run_as_catalogued(name: str, **options: Any) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """(results, expected) by output, after the runs that model.json asks for first."""
    info = model_info(name)
    feeds, expected = golden(model_dir(name))
    with Session(model_dir(name) / info["file"], **options) as session:
        for step in info.get("pre_run", []):
            session.run([], step["feeds"], targets=step["targets"])
        values = session.run(list(expected), feeds)
    results = dict(zip(expected, values, strict=True))
    for output, stride in info.get("golden_stride_hw", {}).items():
        results[output] = results[output][:, ::stride, ::stride]
    return results, expected


@needs_shared
@pytest.mark.parametrize("engine", ["reference", None])
@pytest.mark.parametrize("name", LOOPS_AND_STATE)
def test_loops_branches_and_variables(name: str, engine: str | None) -> None:
    results, expected = run_as_catalogued(name, engine=engine)
    for output, value in expected.items():
        assert_close(results[output], value)


@needs_shared
def test_segmentation_with_active_dropout() -> None:
    """Its dropout is seeded, so TensorFlow's very numbers come out of the first run of a session."""
    results, expected = run_as_catalogued("enet_segmentation", engine="reference")
    for output, value in expected.items():
        assert_close(results[output], value)


@needs_shared
def test_segmentation_in_parts() -> None:
    """MaxPoolWithArgmax decides between near ties, so single pixels differ with the last bit of the sums before it."""
    results, expected = run_as_catalogued("enet_segmentation")
    for output, value in expected.items():
        away = np.abs(results[output] - value)
        assert np.mean(away > 1e-4) < 1e-2
        assert np.mean(np.argmax(results[output], -1) == np.argmax(value, -1)) > 0.999


@needs_shared
def test_tiny_graphs_with_loops_and_branches() -> None:
    """Of the op graphs, those with loops, branches or TensorArrays whose other ops have kernels, against TensorFlow."""
    base = model_dir("op_graphs")
    index = json.loads((base / "index.json").read_text())
    inner = ("Switch", "Merge", "Enter", "TensorArrayV3", "TensorArrayScatterV3", "TensorArrayConcatV3")
    chosen = [
        name
        for name, info in index.items()
        if any(op in info["ops"] for op in inner) and info["golden"] == "TF 2.21" and not info["uses_random"]
        and all(op in STRUCTURAL or op in registry.KERNELS for op in info["ops"])
    ]  # fmt: skip
    assert len(chosen) > 45
    for name in chosen:
        info = index[name]
        with np.load(base / name / "golden.npz", allow_pickle=False) as data:
            arrays = {key: data[key] for key in data.files}
        feeds = {n: arrays[f"in_{n.replace(':', '_')}"] for n in info["inputs"]}
        outputs = [n for n in info["outputs"] if f"out_{n.replace(':', '_')}" in arrays]
        for engine in ("reference", None):
            with Session(base / info["file"], engine=engine) as session:
                for output, value in zip(outputs, session.run(outputs, feeds), strict=True):
                    try:
                        assert_close(value, arrays[f"out_{output.replace(':', '_')}"])
                    except AssertionError as error:
                        raise AssertionError(f"{name} {output} on {engine}: {error}") from None
