"""Writes an ONNX file of a model."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from importlib.util import find_spec
from typing import Any

import numpy as np

from pocketgraph.errors import UsageError, option
from pocketgraph.exporting.model import CODED_TOLERANCE, EntryPoint, ExportModel, Feeds, Written
from pocketgraph.exporting.onnx.protobuf_writer import LARGEST, constant_bytes, model_proto
from pocketgraph.exporting.onnx.to_onnx import OPSET, Converted, converted
from pocketgraph.exporting.programs import LackingError
from pocketgraph.exporting.tflite.open_size_programs import fixed_sizes_note
from pocketgraph.graph import DType, Shape
from pocketgraph.graph.dtype import BFLOAT16
from pocketgraph.graph.tensor import Array
from pocketgraph.runtime.onnx_runner import OnnxRunner
from pocketgraph.version import VERSION

SIGMOID_ERROR = 2**-22
"""Of ONNX Runtime's sigmoid, a quotient of polynomials: 1.4e-7 at most, be the result 0.5 or 1e-8."""
BESIDE = ".data"
"""What the name of the file of large constants ends in, behind the model's own."""


def written_file(model: ExportModel, path: str, *, opset: int | None, fixed: bool, external_data: bool) -> Written:
    """Writes it; see ``write`` of this package."""
    entry = model.main
    notes = []
    try:
        made = _converted(model, entry, opset, fixed=fixed)
    except LackingError as refusal:
        is_open = not all(port.is_fixed for port in entry.inputs)
        if fixed or not is_open:
            raise
        made = _converted(model, entry, opset, fixed=True)
        notes.append(fixed_sizes_note(entry, f"with others, {next(iter(refusal.reasons.values()))}"))
    if opset is None and made.opset > OPSET:
        notes.append(f"the file has opset {made.opset}: opset {OPSET} lacks some of its operators")
    beside = path + BESIDE if external_data or constant_bytes(made.body) > LARGEST else ""
    name = model.about.name or os.path.splitext(os.path.basename(path))[0]
    proto = model_proto(made.body, made.opset, name, VERSION, beside=beside)
    _describe(proto, model)
    data = proto.SerializeToString()
    if len(data) > LARGEST:
        raise UsageError("the model without its constants has over 2 GB, which ONNX files cannot hold")
    with open(path, "wb") as file:
        file.write(data)
    del data
    _check(path)
    written = Written(notes=[*notes, *made.notes], draws=made.draws, has_main_alone=True, sigmoid_error=SIGMOID_ERROR)
    others = [other.name for other in model.entries[1:]]
    if others:
        written.notes.append(
            f"ONNX files have one entry point: {', '.join(others)} left out ({option('signatures')} chooses)"
        )
    if made.is_coded:
        written.is_coded, written.tolerance = True, CODED_TOLERANCE
    if find_spec("onnxruntime") is None:
        written.unchecked = "onnxruntime is not installed (pip install 'pocketgraph[onnx]')"
    else:
        runner = _CheckRun(path, entry, model.threads)
        written.run, written.seconds = runner.run, runner.seconds
    return written


def _converted(model: ExportModel, entry: EntryPoint, opset: int | None, *, fixed: bool) -> Converted:
    """An entry point in the opset that is said, else in the first one from ``OPSET`` on that has its operators."""
    asked = OPSET if opset is None else opset
    while True:
        try:
            return converted_entry(model, entry, asked, fixed=fixed)
        except LackingError as refusal:
            if opset is not None or not refusal.opset:
                raise
            asked = refusal.opset  # which is a later one


def converted_entry(model: ExportModel, entry: EntryPoint, opset: int = OPSET, *, fixed: bool, **how: Any) -> Converted:
    """An entry point as an ONNX graph with its public names; see ``converted``."""
    inputs: dict[str, tuple[DType, Shape]] = {}
    for port in entry.inputs:
        inputs[port.tensor] = port.dtype, Shape(port.sizes if fixed else port.shape)
    input_names = {port.tensor: port.name for port in entry.inputs}
    taken = set(input_names.values())
    # ONNX has one name space for all
    output_names = [f"{port.name}_output" if port.name in taken else port.name for port in entry.outputs]
    outputs = [port.tensor for port in entry.outputs]
    return converted(
        model.graph, inputs, outputs, input_names=input_names, output_names=output_names, opset=opset, **how
    )  # fmt: skip


def _describe(proto: Any, model: ExportModel) -> None:
    """Puts what a person should know into the file: labels, normalization and what it is about."""
    about = model.about
    if about.description:
        proto.doc_string = about.description
    facts: dict[str, str] = {key: value for key, value in (
        ("name", about.name), ("version", about.version), ("author", about.author), ("license", about.license),
    ) if value}  # fmt: skip
    if model.labels:
        facts["labels"] = "\n".join(model.labels)
    if model.normalization is not None:
        facts["mean"] = ",".join(map(str, model.normalization.mean))
        facts["std"] = ",".join(map(str, model.normalization.std))
    for key, value in facts.items():
        proto.metadata_props.add(key=key, value=value)


def _check(path: str) -> None:
    """Has the ONNX package look at the file.

    Raises:
        UsageError: it finds something wrong.
    """
    import onnx

    try:
        onnx.checker.check_model(path)
    except onnx.checker.ValidationError as error:
        raise UsageError(f"the ONNX checker refuses what was written: {error}", hint="this is a bug of ours") from error


class _CheckRun:
    """Runs what was written, in ONNX Runtime on the CPU."""

    def __init__(self, path: str, entry: EntryPoint, threads: int) -> None:
        self._file = OnnxRunner(path, threads, where="what was written")
        self._entry = entry

    def run(self, name: str, feeds: Feeds) -> dict[str, Array]:
        """The outputs by public name."""
        results = self._file.run(None, self._given(feeds))
        return {
            port.name: result.astype(port.dtype.numpy) if port.dtype is BFLOAT16 else result
            for port, result in zip(self._entry.outputs, results, strict=True)
        }

    def seconds(self, name: str, feeds: Feeds) -> float:
        """The time of one run."""
        given = self._file.prepared(self._given(feeds))
        start = time.perf_counter()
        self._file.run(None, given)
        return time.perf_counter() - start

    def _given(self, feeds: Feeds) -> Mapping[str, Array]:
        given = {port.name: np.asarray(feeds[port.name]) for port in self._entry.inputs}
        return {
            name: value.astype(np.float32) if value.dtype == BFLOAT16.numpy else value for name, value in given.items()
        }
