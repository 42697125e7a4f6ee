"""Writes a Core ML package of a model."""

from __future__ import annotations

import contextlib
import io
import logging
import os
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from pocketgraph.errors import RunError, UsageError, option
from pocketgraph.exporting.coreml.evaluation import Package
from pocketgraph.exporting.coreml.names import feature_names
from pocketgraph.exporting.coreml.translation import Translation, oldest_ios
from pocketgraph.exporting.labels import check_labels
from pocketgraph.exporting.model import CODED_TOLERANCE, ExportModel, Feeds, Normalization, Port, Written, check_sizes
from pocketgraph.exporting.onnx.onnx_exporter import converted_entry
from pocketgraph.exporting.onnx.onnx_program import Body, OnnxValue
from pocketgraph.exporting.programs import LackingError
from pocketgraph.exporting.samples import taken_feeds
from pocketgraph.graph.tensor import Array
from pocketgraph.package_data import text_beside
from pocketgraph.runtime.comparison.compare import HALF_TOLERANCE
from pocketgraph.runtime.session import Session
from pocketgraph.version import VERSION

SUFFIX = ".mlpackage"
TOLERANCES = {"float32": 1e-4, "float16": HALF_TOLERANCE}
"""The largest difference from the reference engine, as a share of the peak."""
CHECKED_HERE = (
    "Core ML itself runs on macOS and iOS alone. What was written was read back and computed by its operators' "
    "definitions; on a Mac, `python3 {script}` runs it (pip install coremltools numpy pillow)"
)
BESIDE = ".check.py", ".golden.npz"
"""What the names of the script for a Mac and of its numbers end in, behind the package's own."""
GOLDEN_INPUTS = 3  # samples that the script feeds


@dataclass(frozen=True)
class _NamedPort:
    """An input or output of the package.

    Attributes:
        port: of the entry point.
        name: what the package calls it.
        picture: how the pixels of an image input become numbers; None for a multi-array.
        is_scalar: whether the graph has a scalar for it.
    """

    port: Port
    name: str
    picture: Normalization | None = None
    is_scalar: bool = False

    @property
    def sizes(self) -> tuple[int, ...]:
        """The shape in the model."""
        return self.port.sizes or ()

    def in_graph(self, array: Array) -> Array:
        """What the package gives, as the graph has it: there are no scalars in packages."""
        shaped = array.reshape(()) if self.is_scalar else array
        return np.asarray(shaped.astype(self.port.dtype.numpy))

    @property
    def is_float(self) -> bool:
        """Whether it is of real numbers; the others are int32."""
        return self.port.dtype.is_floating

    def pixels(self, array: Array) -> Array:
        """The values 0 to 255, channels first, whose picture this input is; not rounded."""
        assert self.picture is not None
        mean, std = (np.asarray(numbers, np.float32) for numbers in (self.picture.mean, self.picture.std))
        return np.asarray((array.astype(np.float32) * std + mean).transpose(0, 3, 1, 2))


def written_file(model: ExportModel, path: str, *, precision: Literal["float32", "float16"], image: bool) -> Written:
    """Writes it; see ``write`` of this package."""
    if not path.endswith(SUFFIX):
        name = os.path.basename(path)
        raise UsageError(f"a Core ML package has a name that ends in {SUFFIX}, not '{name}'", hint=f"-o {name}{SUFFIX}")
    check_labels(model)
    entry = model.main
    notes = check_sizes(model, "a Core ML package")
    inputs, outputs = _features(model, image)
    made = converted_entry(model, entry, fixed=True, target="Core ML")
    if any(operation.code == "Loop" for operation in made.body.operations):
        made = converted_entry(model, entry, fixed=True, target="Core ML", without_loops=True)
    notes += made.notes
    if len(model.entries) > 1:
        others = ", ".join(other.name for other in model.entries[1:])
        notes.append(f"a package has one entry point: '{entry.name}'; {option('signatures')} picks another ({others})")
    for feature in (*inputs, *outputs):
        if feature.name != feature.port.name:
            notes.append(f"'{feature.port.name}' is called '{feature.name}', since Core ML takes letters and digits")
    labels = _unique(model.labels, notes)
    ios = oldest_ios(made.body)
    if ios > 15:
        what = "tensors that are quantized on the way" if ios > 16 else "weights that stay eight-bit codes"
        notes.append(f"the package needs iOS {ios} (macOS {ios - 3}), for {what}")
    outputs = [replace(f, is_scalar=v.rank == 0) for f, v in zip(outputs, made.body.outputs, strict=True)]
    with _quiet(), tempfile.TemporaryDirectory(dir=os.path.dirname(path)) as folder:
        first = os.path.join(folder, f"first{SUFFIX}")
        package = _package(model, made.body, inputs, outputs, labels, precision, ios, first)
        package.save(path)
        _readable(path)
        read = Package(path)
    for feature in [feature for feature in inputs if feature.name not in read.inputs]:
        notes.append(f"'{feature.port.name}' is no input of the package: nothing depends on it")
        inputs.remove(feature)
    written = Written(notes=notes, tolerance=TOLERANCES[precision], has_main_alone=True)
    if made.is_coded:
        written.is_coded, written.tolerance = True, CODED_TOLERANCE
    _write_check(model, path, inputs, outputs, labels, written.tolerance)
    written.run = _Evaluated(read, inputs, outputs, labels).run
    written.is_timed = False
    written.unchecked = CHECKED_HERE.format(script=os.path.basename(path) + BESIDE[0])
    return written


def _features(model: ExportModel, image: bool) -> tuple[list[_NamedPort], list[_NamedPort]]:
    """Inputs and outputs by their names in the package.

    Raises:
        UsageError: one is of a type that Core ML does not have.
    """
    ports = [*model.main.inputs, *model.main.outputs]
    for port in ports:
        if not port.dtype.is_floating and port.dtype.numpy.kind not in "iub":
            raise UsageError(f"'{port.name}' is of the type {port.dtype.name}, and Core ML's are numbers")
    names = feature_names(ports)
    features = [_NamedPort(port, name) for port, name in zip(ports, names, strict=True)]
    count = len(model.main.inputs)
    if image and count and (how := _normalization(model, ports[0])) is not None:
        features[0] = _NamedPort(ports[0], features[0].name, how)
    return features[:count], features[count:]


def _normalization(model: ExportModel, port: Port) -> Normalization | None:
    """How pixels become the input's numbers; None where it is no picture, or nobody said."""
    sizes = port.sizes or ()
    if len(sizes) != 4 or sizes[0] != 1 or sizes[3] not in (1, 3):
        return None
    return Normalization() if port.dtype.name == "uint8" else model.normalization


def _unique(labels: tuple[str, ...], notes: list[str]) -> list[str]:
    """Labels of which no two are equal: Core ML's scores are a dictionary."""
    counts = Counter(labels)
    twice = [label for label, count in counts.items() if count > 1]
    if twice:
        notes.append(f"labels that several classes have got their number behind them: {', '.join(twice[:3])}")
    return [f"{label} ({place})" if counts[label] > 1 else label for place, label in enumerate(labels)]


def _package(
    model: ExportModel, body: Body, inputs: list[_NamedPort], outputs: list[_NamedPort], labels: list[str],
    precision: str, ios: int, path: str,
) -> Any:  # fmt: skip
    """The package, as coremltools makes it at ``path``: in its own folder of temporary files it outlives a kill."""
    import coremltools as ct
    from coremltools.converters.mil.mil import Function, Program

    target = ct.target[f"iOS{ios}"]
    program, translation = Program(), Translation()
    placeholders = {feature.name: _placeholder(translation, feature) for feature in inputs}
    with Function(placeholders, opset_version=target) as function:
        for feature, value in zip(inputs, body.inputs, strict=True):
            translation.name(feature.name)
            _bind_input(translation, value, function.inputs[feature.name], feature)
        for feature in outputs:
            translation.name(feature.name)
        translation.translate(body)
        if translation.reasons:
            raise LackingError("Core ML", model.graph, translation.reasons)
        function.set_outputs([
            _output(translation, value, feature) for value, feature in zip(body.outputs, outputs, strict=True)
        ])  # fmt: skip
    program.add_function("main", function)
    passes = ct.PassPipeline()  # an index beyond a one-hot vector selects no row of a matrix; a gather has none for it
    passes.remove_passes({"common::fuse_onehot_matmul_to_gather"})
    classifier = ct.ClassifierConfig(labels, predicted_probabilities_output=outputs[0].name) if labels else None
    try:
        package = ct.convert(
            program, convert_to="mlprogram", minimum_deployment_target=target, skip_model_load=True, package_dir=path,
            pass_pipeline=passes, inputs=[_described(feature) for feature in inputs], classifier_config=classifier,
            compute_precision=ct.precision.FLOAT16 if precision == "float16" else ct.precision.FLOAT32,
        )  # fmt: skip
    except (ValueError, TypeError, RuntimeError, NotImplementedError, AssertionError, KeyError) as error:
        raise RunError(f"coremltools does not take the program: {' '.join(str(error).split())[:300]}") from error
    about = model.about
    package.short_description = about.description or about.name
    package.author, package.license, package.version = about.author, about.license, about.version
    package.user_defined_metadata["pocketgraph"] = VERSION
    if labels and inputs[0].picture is not None:
        package.user_defined_metadata["com.apple.coreml.model.preview.type"] = "imageClassifier"
    return package


def _placeholder(translation: Translation, feature: _NamedPort) -> Any:
    from coremltools.converters.mil.mil import types

    kind = types.fp32 if feature.is_float or feature.picture is not None else types.int32
    return translation.builder.placeholder(shape=_shape(feature), dtype=kind)


def _shape(feature: _NamedPort) -> tuple[int, ...]:
    """The shape of a feature of the package: images have their channels second, and there are no scalars."""
    if feature.picture is not None:
        batch, height, width, channels = feature.sizes
        return batch, channels, height, width
    return feature.sizes or (1,)


def _described(feature: _NamedPort) -> Any:
    """An input as coremltools wants it described."""
    import coremltools as ct

    how = feature.picture
    if how is None:
        kind = np.float32 if feature.is_float else np.int32
        return ct.TensorType(name=feature.name, shape=_shape(feature), dtype=kind)
    channels = feature.sizes[3]
    layout = ct.colorlayout.RGB if channels == 3 else ct.colorlayout.GRAYSCALE
    scale, bias = 1.0, [0.0] * channels
    if len(set(how.std)) == 1:
        scale = 1.0 / how.std[0]
        bias = [-mean * scale for mean in (how.mean if len(how.mean) == channels else how.mean * channels)]
    return ct.ImageType(
        name=feature.name, shape=_shape(feature), scale=scale, bias=bias if channels == 3 else bias[0],
        color_layout=layout,
    )  # fmt: skip


def _bind_input(translation: Translation, value: OnnxValue, given: Any, feature: _NamedPort) -> None:
    how = feature.picture
    if how is not None:
        if len(set(how.std)) > 1:  # the package's own scale is one number
            mean, std = (np.asarray(numbers, np.float32).reshape(-1, 1, 1) for numbers in (how.mean, how.std))
            given = translation.op("real_div", x=translation.op("sub", x=given, y=mean), y=std)
        given = translation.op("transpose", x=given, perm=[0, 2, 3, 1])
    elif not feature.sizes:
        given = translation.op("squeeze", x=given)
    if value.dtype.name == "bool":
        given = translation.cast(given, "bool")
    elif not feature.is_float and how is not None:
        given = translation.cast(given, "int32")
    translation.bind(value, given)


def _output(translation: Translation, value: OnnxValue, feature: _NamedPort) -> Any:
    found = translation.value(value)
    if translation.is_bool(found):
        found = translation.cast(found, "int32")
    if found.rank == 0:
        found = translation.op("expand_dims", x=found, axes=[0])
    return translation.builder.identity(x=found, name=feature.name)


def _readable(path: str) -> None:
    """Gives the package's files the rights that new files have; coremltools keeps the model to its owner."""
    mask = os.umask(0)
    os.umask(mask)
    for folder, _, names in os.walk(path):
        for name in names:
            os.chmod(os.path.join(folder, name), 0o666 & ~mask)


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Keeps coremltools' bars and warnings off the terminal."""
    logger = logging.getLogger("coremltools")
    before = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with contextlib.redirect_stderr(io.StringIO()), contextlib.redirect_stdout(io.StringIO()):
            yield
    finally:
        logger.setLevel(before)


def _write_check(
    model: ExportModel,
    path: str,
    inputs: list[_NamedPort],
    outputs: list[_NamedPort],
    labels: list[str],
    tolerance: float,
) -> None:
    """Puts the script for a Mac beside the package, with inputs and what must come of them."""
    name = os.path.basename(path)
    entry = model.main
    given = list(model.samples())[:GOLDEN_INPUTS] if model.samples is not None else [taken_feeds(model)]
    arrays: dict[str, Array] = {}
    with Session(model.graph, model.threads, engine="reference") as session:
        for number, feeds in enumerate(given):
            fed = dict(feeds)
            for feature in inputs:
                array = np.asarray(fed[feature.port.name])
                if feature.picture is not None:  # whole pixels, and the numbers that they stand for
                    pixels = np.clip(np.rint(feature.pixels(array)), 0, 255).astype(np.uint8)
                    mean, std = (np.asarray(part, np.float32) for part in (feature.picture.mean, feature.picture.std))
                    exact = (pixels.transpose(0, 2, 3, 1).astype(np.float32) - mean) / std
                    fed[feature.port.name] = exact.astype(feature.port.dtype.numpy)
                    arrays[f"{number}/in/{feature.name}"] = pixels.transpose(0, 2, 3, 1)[0]
                else:
                    kind = np.float32 if feature.is_float else np.int32
                    arrays[f"{number}/in/{feature.name}"] = array.astype(kind).reshape(_shape(feature))
            for feature, result in zip(outputs, entry.run(session, fed).values(), strict=True):
                kind = np.float32 if feature.is_float else np.int32
                arrays[f"{number}/out/{feature.name}"] = np.asarray(result).astype(kind)
    if labels:
        arrays["labels"] = np.asarray(labels)
        arrays["scores"] = np.asarray(outputs[0].name)
    with open(path + BESIDE[1], "wb") as file:
        np.savez_compressed(file, **arrays)  # type: ignore[arg-type]
    script = text_beside(__file__, "check_on_mac.py.txt")
    script = script.replace("@package@", name).replace("@golden@", name + BESIDE[1])
    with open(path + BESIDE[0], "w", encoding="utf-8", newline="\n") as file:
        file.write(script.replace("@tolerance@", f"{max(tolerance, TOLERANCES['float16']):g}"))


@dataclass
class _Evaluated:
    """The package as it was read back, for the check of exports."""

    package: Package
    inputs: list[_NamedPort]
    outputs: list[_NamedPort]
    labels: list[str]

    def run(self, name: str, feeds: Feeds) -> dict[str, Array]:
        given = {}
        for feature in self.inputs:
            array = np.asarray(feeds[feature.port.name])
            if feature.picture is not None:
                given[feature.name] = feature.pixels(array)
            else:
                given[feature.name] = array.astype(np.float32 if feature.is_float else np.int32).reshape(
                    _shape(feature)
                )
        found = self.package.run(given)
        results = {}
        for feature in self.outputs:
            array = found[feature.name]
            results[feature.port.name] = feature.in_graph(array)
        return results
