"""A page that runs the model in the browser, with the applications of ``pocketgraph live``."""

from __future__ import annotations

import io
import json
import os
from collections.abc import Sequence
from dataclasses import replace
from html import escape
from importlib.resources import files
from typing import Any

import numpy as np

from pocketgraph.apps.live.anchors import multibox_priors, read_numbers, ssd_anchors
from pocketgraph.apps.live.application_choice import are_classes, chosen
from pocketgraph.apps.live.detection import no_detector, recognised, unread_boxes
from pocketgraph.apps.live.pictures import PALETTE, SIZES
from pocketgraph.apps.live.word_recognition import may_repeat
from pocketgraph.apps.projects.litert_facts import as_json, facts
from pocketgraph.apps.projects.project import Project, about, front
from pocketgraph.apps.projects.project_files import project_files
from pocketgraph.apps.projects.web_types import cast_for_page
from pocketgraph.datasets.picture_input import PictureInput, describe
from pocketgraph.datasets.recordings import USUAL_RATE
from pocketgraph.errors import PocketgraphError, UsageError, option
from pocketgraph.exporting.entry_sizes import with_fixed_shapes, with_sizes
from pocketgraph.exporting.labels import check_labels
from pocketgraph.exporting.model import EntryPoint, Normalization, Port
from pocketgraph.formats.files import write_files
from pocketgraph.graph import Graph, canonical, node_name
from pocketgraph.graph.entry_points import likely_outputs
from pocketgraph.graph.model_file_graph import SCALES, ZERO_POINTS, has_codes, is_litert_file
from pocketgraph.inspect.step_flops import count_step
from pocketgraph.kernels.audio.spectrograms import audio_spectrogram, mfcc

LITERT_VERSION = "2.5.3"
SHARED = ("main.js", "capture.js", "drawing.js", "recorder.js", "live.css")
"""Files of the live page that this one has too."""
HEAD = """<link rel="manifest" href="app.webmanifest">
<link rel="icon" href="icon.svg">
</head>"""
SOUND_OPS = {"AudioSpectrogram": audio_spectrogram, "Mfcc": mfcc}


def wanted_outputs(graph: Graph, app: str = "") -> list[str] | None:
    """The tensors that the page reads, where they are not just the model's outputs.

    Args:
        graph: the model.
        app: the application, where the caller knows it.

    Raises:
        UsageError: there is no such application, or the graph is not for it.
    """
    kind, tensor = chosen(graph, None, app or None)
    if kind == "detect":
        found = recognised(graph)
        if found is None:
            raise no_detector()
        return list(found.tensors.values())
    ends = [canonical(name) for name, _ in likely_outputs(graph)]
    if kind == "classify" and tensor is not None and canonical(tensor) in ends[1:]:
        return [tensor]  # and no boxes or the like beside them
    if tensor is None or (kind == "classify" and node_name(tensor) in map(node_name, ends)):
        return None
    return [tensor] if kind in ("stylize", "pose", "image", "embed", "classify") else None


def write(project: Project, folder: str) -> None:
    """Writes the project.

    Raises:
        UsageError: a detector needs boxes that were not given, a finished file takes or gives what LiteRT.js
            lacks, or a page for sound would have to compute a spectrum that it does not know.
    """
    path = os.path.join(folder, "public", "model.tflite")
    cast_for_page(project)
    kind, _ = chosen(project.model.graph, None, project.app or None, project.labels)
    kind = "speech" if project.model.front is not None else kind
    if kind == "speech" and (spectrum := _other_spectrum(project)):
        if project.app:
            raise UsageError(
                f"the page computes no other spectrum than AudioSpectrogram and Mfcc, and the model takes {spectrum}",
                hint=f"live hears with the whole graph; {option('app')}=benchmark makes a page that times the rest",
            )
        kind = "benchmark"
    takes_picture = len(project.inputs) == 1 and _is_picture(project.inputs[0].sizes)
    if kind == "benchmark" and not project.app and takes_picture:
        project.notes += filter(None, [unread_boxes({port.name: port.sizes or () for port in project.outputs})])
    sizes = _other_sizes(project) if kind == "stylize" and not project.source else {}
    project.model = replace(project.model, entries=(project.model.main, *sizes.values()))
    if kind in ("classify", "speech"):
        check_labels(project.model)
    project.place_model(path, labelled=kind in ("classify", "speech"))
    described = facts(project, path)
    order = _inverse(described["input_places"]), _inverse(described["output_places"])
    content = _model(project, kind, described, order)
    if project.picture is not None and "input" in content and not content["input"]["whole"]:
        mean, std = (tuple(content["input"][name]) for name in ("mean", "std"))
        is_usual = (mean, std) == (project.picture.mean, project.picture.std)
        is_assumed = project.picture.is_assumed and is_usual  # else the application tells it
        project.picture = replace(project.picture, mean=mean, std=std, is_assumed=is_assumed)
    words = {
        "title": project.name.title, "html_title": escape(project.name.title),
        "json_title": json.dumps(project.name.title, ensure_ascii=False), "small": project.name.small,
        "about": about(project), "front": front(project), "litert_version": LITERT_VERSION,
    }  # fmt: skip
    made = project_files("web", words)
    page = files("pocketgraph.apps.live") / "page"
    made["src/index.html"] = page.joinpath("index.html").read_text("utf-8").replace("</head>", HEAD).encode()
    for name in SHARED:
        made[f"src/{name}"] = page.joinpath(name).read_bytes()
    for size in (192, 512):
        made[f"public/icon-{size}.png"] = icon(size)
    if sizes:
        content["sizes"] = [_at(size, entry, order) for size, entry in _with_main(project, sizes)]
    made["public/model.json"] = as_json(content)
    project.app = str(content["kind"])
    for kind, places in zip(("input", "output"), order, strict=True):
        given = project.golden_files()
        for place, port in enumerate(places):
            made[f"public/golden/{kind}_{place}.bin"] = given[f"{kind}_{port}.bin"]
    write_files(folder, made)


def _inverse(places: Sequence[int]) -> list[int]:
    return [list(places).index(place) for place in sorted(places)]


def _other_sizes(project: Project) -> dict[int, EntryPoint]:
    """Entry points for pictures of half the size to twice the size, by their width, where the graph leaves it open."""
    place = next((i for i, port in enumerate(project.inputs) if _is_picture(port.sizes)), None)
    if place is None:
        return {}
    port = project.inputs[place]
    declared = project.model.graph.producer(port.tensor).shape()
    if declared is None or declared.dims is None or declared.dims[1:3] != (None, None):
        return {}
    batch, height, width, channels = port.sizes or (1, 1, 1, 3)
    found = {}
    for size in SIZES:
        if size != width and width <= 2 * size <= 4 * width:
            other = with_sizes(project.model, {port.tensor: (batch, round(height * size / width), size, channels)})
            found[size] = replace(with_fixed_shapes(other).main, name=f"size_{size}")
    return found


def _with_main(project: Project, sizes: dict[int, EntryPoint]) -> list[tuple[int, EntryPoint]]:
    """All sizes with their entry points, the smallest first."""
    width = next((port.sizes or ())[2] for port in project.inputs if _is_picture(port.sizes))
    return sorted({**sizes, width: project.model.main}.items())


def _at(size: int, entry: EntryPoint, order: tuple[list[int], list[int]]) -> dict[str, Any]:
    """What the page has to know of one size: its signature, and shapes in the file's order."""
    inputs, outputs = ([list(ports[i].sizes or ()) for i in places]
                       for ports, places in zip((entry.inputs, entry.outputs), order, strict=True))  # fmt: skip
    return {"size": size, "signature": entry.name, "inputs": inputs, "outputs": outputs}


def _model(project: Project, kind: str, ports: dict[str, Any], order: tuple[list[int], list[int]]) -> dict[str, Any]:
    """What the page has to know: model.json."""
    graph, entry = project.model.graph, project.model.main
    channels = (entry.outputs[0].sizes or (0,))[-1]
    app = (
        "segment"
        if kind == "image"
        and (
            are_classes(graph, entry.outputs[0].tensor)
            or (channels not in (1, 3) and (entry.outputs[0].sizes or (0, 0))[1] not in (1, 3))
        )
        else kind
    )
    found: dict[str, Any] = {
        "name": project.name.title,
        "kind": kind,
        "app": app,
        "labels": list(project.labels),
        "tolerance": project.tolerance,
        "by_mean": project.by_mean,
        "flops": _operations(project),
        "inputs": [_port(project, ports["inputs"][i], entry.inputs[i].tensor) for i in order[0]],
        "outputs": [_port(project, ports["outputs"][i], entry.outputs[i].tensor) for i in order[1]],
    }
    if app == "segment":
        found["palette"] = PALETTE.tolist()
    if kind == "speech":
        return {**found, **_sound(project), "repeats": may_repeat(project.labels)}
    if kind == "benchmark":
        return found
    detector = recognised(graph) if kind == "detect" else None
    pictures = [_described(graph, port) for port in entry.inputs]
    places = [i for i, picture in enumerate(pictures) if picture is not None]
    if len(places) != 1:
        if project.app:
            raise UsageError(f"a page for '{kind}' gives the model one picture, and this model takes {len(places)}")
        return {**found, "kind": "benchmark", "app": "benchmark"}
    found["input"] = _picture(project, pictures[places[0]], detector, 127.5 if kind == "pose" else None)
    if kind == "stylize":
        found["place"] = order[0].index(places[0])
        size = np.prod(entry.inputs[1 - places[0]].sizes or (1,))
        found["labels"] = [*project.labels[: int(size)], *(f"style {i}" for i in range(len(project.labels), int(size)))]
    if detector is not None:
        parts = {tensor: part for part, tensor in detector.tensors.items()}
        found["decoder"], found["least"] = detector.family.name, detector.family.least
        names = [_part(parts, graph, entry.outputs[i].tensor) for i in order[1]]
        found["parts"] = names
        found["anchors"] = _anchors(project, detector.family.anchors, [found["outputs"][names.index("boxes")]["shape"]]
                                    if "boxes" in names else [])  # fmt: skip
    return found


def _operations(project: Project) -> dict[str, Any]:
    """The operations of one run, as ``fit`` counts them: the page's times tell a speed with them."""
    feeds = {port.tensor: project.golden[0][port.name] for port in project.inputs}
    return count_step(project.model.graph, feeds, [port.tensor for port in project.outputs]).as_dict()


def _part(parts: dict[str, str], graph: Graph, tensor: str) -> str:
    """Which part of a detector an output is, perhaps after a cast to what the page reads."""
    node = graph.producer(tensor)
    names = [tensor, *(node.data_inputs if node.op == "Cast" else ())]
    return next(parts[name] for ref in names for name in (ref, ref.removesuffix(":0")) if name in parts)


def _port(project: Project, port: dict[str, Any], tensor: str) -> dict[str, Any]:
    """One input or output; with what its codes stand for where it has codes."""
    graph = project.model.graph
    scale, zero = 0.0, 0
    if is_litert_file(graph):
        node, _, number = tensor.partition(":")
        attrs = graph[node].attrs
        scales, zeros = attrs.get(SCALES, ()), attrs.get(ZERO_POINTS, ())
        if isinstance(scales, tuple) and isinstance(zeros, tuple) and scales:
            scale, zero = float(scales[int(number or 0)]), int(zeros[int(number or 0)])
    return {"name": port["name"], "shape": port["shape"], "dtype": port["type"], "scale": scale, "zero_point": zero}


def _is_picture(sizes: tuple[int | None, ...] | None) -> bool:
    return sizes is not None and len(sizes) == 4 and sizes[-1] in (1, 3) and min(size or 0 for size in sizes[1:3]) > 1


def _described(graph: Graph, port: Port) -> PictureInput | None:
    """The picture that an input takes; None where it takes none."""
    sizes = port.sizes or ()
    if len(sizes) not in (2, 3, 4):
        return None
    planes = len(sizes) == 4 and sizes[1] in (1, 3) and sizes[3] not in (1, 3)
    rows, columns = (None, None) if len(sizes) == 2 else sizes[-2:] if planes else sizes[-3:-1]
    try:
        found = describe(graph, port.tensor, columns, rows, None)
    except PocketgraphError:
        return None
    return found if min(found.height, found.width) > 1 else None


def _picture(project: Project, picture: PictureInput | None, detector: Any, usual: float | None) -> dict[str, Any]:
    """How pixels become the input: size and scaling; what was said comes before the family's."""
    assert picture is not None
    how = project.model.normalization
    if how is None and detector is not None:
        how = Normalization((detector.family.mean,), (detector.family.std,))
    if how is None:
        how = Normalization((0.0,), (255.0,)) if usual is None else Normalization((usual,), (usual,))
    mean, std = (list(part) * (picture.channels if len(part) == 1 else 1) for part in (how.mean, how.std))
    is_whole = picture.dtype.is_integer and not has_codes(project.model.graph, picture.tensor)
    return {
        "height": picture.height, "width": picture.width, "channels": picture.channels, "mean": mean, "std": std,
        "whole": is_whole, "planes": picture.layout == "NCHW",
        "reversed": bool(detector is not None and detector.family.reversed),
    }  # fmt: skip


def _anchors(project: Project, need: str, shapes: list[Any]) -> list[float] | None:
    """The numbers that a family's boxes are relative to, in one row."""
    if not need or (need == "yolo" and not project.boxes):
        return None
    count = int(np.prod(shapes[0])) // 4 if shapes else 0
    if need == "priors" and project.boxes:
        return [float(v) for v in multibox_priors(project.boxes, count).reshape(-1)]
    if project.boxes:
        return [float(v) for v in read_numbers(project.boxes).reshape(-1)]
    made = ssd_anchors(count, (project.inputs[0].sizes or (0, 0))[1] or 0) if need == "anchors" else None
    if made is None:
        raise UsageError(
            "this detector needs its priors or anchors",
            hint=f"pass {option('priors', 'boxes')}=FILE, or {option('app')}=benchmark for a page that only runs it",
        )
    return [float(v) for v in made.reshape(-1)]


def _other_spectrum(project: Project) -> str:
    """What a model takes of a recording that the page does not make of it, in words; "" where it makes all."""
    front_part, port = project.model.front, project.inputs[0]
    if front_part is not None:
        several = len(front_part.shapes) > 1
        return f"{len(front_part.shapes)} tensors that the graph makes of a recording" if several else ""
    is_row = project.model.texts is None and sum(size > 1 for size in port.sizes or ()) == 1
    return "" if is_row else f"'{port.name}' {list(port.sizes or ())}, which is made of samples"


def _sound(project: Project) -> dict[str, Any]:
    """The rate, how many samples are heard at once, and the steps in front of the model."""
    front_part = project.model.front
    if front_part is None:
        sizes = project.inputs[0].sizes or (USUAL_RATE,)
        return {"rate": project.model.sample_rate or USUAL_RATE, "samples": int(np.prod(sizes)), "front": []}
    rate = front_part.rate or project.model.sample_rate or USUAL_RATE
    samples, steps = rate, []
    for node in front_part.graph:
        count = node.attr("desired_samples")
        if node.op == "DecodeWav" and isinstance(count, int) and count > 0:
            samples = count
        if node.op in SOUND_OPS:
            defaults = SOUND_OPS[node.op].__kwdefaults__ or {}
            steps.append(
                {"op": node.op, **defaults, **{k: v for k, v in node.attrs.items() if isinstance(v, (int, float))}}
            )
    steps.sort(key=lambda step: list(SOUND_OPS).index(str(step["op"])))
    return {"rate": rate, "samples": samples, "front": steps}


def icon(size: int) -> bytes:
    """The app's icon as a PNG of so many pixels to a side: a camera on blue."""
    from PIL import Image, ImageDraw

    unit = size / 64
    picture = Image.new("RGBA", (size, size))
    draw = ImageDraw.Draw(picture)

    def at(*sides: float) -> list[float]:
        return [unit * side for side in sides]

    draw.rounded_rectangle(at(0, 0, 63.9, 63.9), 14 * unit, fill="#1f5fd0")
    draw.polygon([tuple(at(*point)) for point in ((22, 24), (26, 18), (38, 18), (42, 24))], fill="white")
    draw.rectangle(at(14, 24, 50, 48), fill="white")
    draw.ellipse(at(24, 27, 40, 43), fill="#1f5fd0")
    made = io.BytesIO()
    picture.save(made, "PNG")
    return made.getvalue()
