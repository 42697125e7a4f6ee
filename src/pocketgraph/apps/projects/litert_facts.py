"""What an app has to know of a .tflite file, as facts for it and as numbers for its test."""

from __future__ import annotations

import io
import json
from typing import Any

import numpy as np

from pocketgraph.apps.projects.project import Project
from pocketgraph.errors import RunError
from pocketgraph.exporting.model import Port


def facts(project: Project, path: str) -> dict[str, Any]:
    """The model's facts, for a JSON file.

    Args:
        path: the model's file; it says in which order inputs and outputs are.

    Raises:
        RunError: LiteRT does not take the file.
    """
    from ai_edge_litert.interpreter import Interpreter

    from pocketgraph.litert.running.file_interpreter import source_of

    try:
        interpreter = Interpreter(**source_of(path))
    except (ValueError, RuntimeError) as error:
        raise RunError(f"LiteRT does not take the model: {error}", where=path) from None
    entering, leaving = _places(interpreter, project)
    picture = project.picture
    return {
        "name": project.name.title,
        "inputs": [described(port) for port in project.inputs],
        "outputs": [described(port) for port in project.outputs],
        "input_places": entering,
        "output_places": leaving,
        "picture": None if picture is None else {
            "height": picture.height, "width": picture.width, "channels": picture.channels,
            "mean": list(picture.mean), "std": list(picture.std),
        },
        "sound": None if project.sound is None else project.sound.facts(),
        "gives_scores": project.gives_scores,
        "tolerance": project.tolerance, "by_mean": project.by_mean,
    }  # fmt: skip


def _places(interpreter: Any, project: Project) -> tuple[list[int], list[int]]:
    """Which of the file's inputs and outputs each one of the model is."""
    signatures = interpreter.get_signature_list()
    key = project.model.main.name if project.model.main.name in signatures else next(iter(signatures), "")
    if not key:
        return list(range(len(project.inputs))), list(range(len(project.outputs)))
    runner = interpreter.get_signature_runner(key)
    found = []
    for ports, details, named in (
        (project.inputs, interpreter.get_input_details(), runner.get_input_details()),
        (project.outputs, interpreter.get_output_details(), runner.get_output_details()),
    ):
        order = [detail["index"] for detail in details]
        if any(port.name not in named for port in ports) or any(
            named[port.name]["index"] not in order for port in ports
        ):
            found.append(list(range(len(ports))))
        else:
            found.append([order.index(named[port.name]["index"]) for port in ports])
    return found[0], found[1]


def described(port: Port) -> dict[str, Any]:
    """An input or output for a JSON file."""
    return {"name": port.name, "shape": list(port.sizes or ()), "type": port.dtype.numpy.name}


def as_json(content: dict[str, Any]) -> bytes:
    """A JSON file for people too."""
    return (json.dumps(content, indent=2, ensure_ascii=False) + "\n").encode()


def golden_arrays(project: Project) -> bytes:
    """An .npz with ``input_0``, …, ``output_0``, …."""
    arrays = {f"{kind}_{place}": np.asarray(array) for kind, place, _, array in project.golden_arrays()}
    made = io.BytesIO()
    np.savez_compressed(made, **arrays)  # type: ignore[arg-type]
    return made.getvalue()
