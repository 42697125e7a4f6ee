"""How many samples a second a graph hears, as far as it tells, and whether a model hears recordings at all."""

from __future__ import annotations

import math

import numpy as np

from pocketgraph.datasets.model_input import ModelInput
from pocketgraph.datasets.picture_scaling import is_plane
from pocketgraph.datasets.recordings import FEWEST_SAMPLES, USUAL_RATE
from pocketgraph.errors import UsageError, shapes_option
from pocketgraph.formats.tflite_metadata import metadata
from pocketgraph.graph import Graph, canonical
from pocketgraph.graph.model_file_graph import is_litert_file
from pocketgraph.graph.op_traits import PLACEHOLDERS, ops_with
from pocketgraph.kernels.shapes import infer
from pocketgraph.pages.quantities import counted

RATES = (8000, 11025, USUAL_RATE, 22050, 24000, 32000, 44100, 48000)
"""Samples a second that recordings have."""
TELLING = frozenset({"AudioSpectrogram", "Mfcc", "RFFT"})
"""Not a trait: ops whose windows or operands tell a rate."""
FINGERPRINT = "fingerprint"
"""In the name of what TensorFlow's speech_commands trains on: a row of numbers that is made of a recording, and no
recording, though it is as long as a short one."""
SHORTEST, LONGEST = 20, 50  # milliseconds of a window, the time in which speech hardly changes
SHORTEST_TRANSFORM = 15  # milliseconds: a power of two, as 256 of 16,000 samples in TensorFlow's tutorial


def model_sample_rate(graph: Graph) -> int | None:
    """The samples a second that a graph hears; None where it does not tell.

    A LiteRT file's metadata may say it, or an Mfcc. Else it is the rate by which the graph takes whole seconds, in
    windows as long as those of speech are: 8,000 samples in windows of 240 are one second at 8,000 a second, in windows
    of 480 half a second at 16,000.
    """
    stated = metadata(graph.extra) if is_litert_file(graph) else None
    if stated is not None and stated.sample_rate:
        return stated.sample_rate
    if not any(node.op in TELLING for node in graph):
        return None
    inferred = infer(graph)
    mfccs = [inferred.value(canonical(node.inputs[1])) for node in graph if node.op == "Mfcc"]
    rates = {int(np.reshape(value, -1)[0]) for value in mfccs if value is not None and value.size == 1}
    if len(rates) == 1:
        return rates.pop()
    counts = {node.attr("desired_samples", -1) for node in graph if node.op in ops_with("recording")}
    windows = {node.attr("window_size", 0) for node in graph if node.op == "AudioSpectrogram"}
    shortest = SHORTEST if windows else SHORTEST_TRANSFORM
    transforms = [inferred.value(canonical(node.inputs[1])) for node in graph if node.op == "RFFT"]
    if transforms and not windows:  # samples go in as they are, in windows of a power of two
        windows = {int(value.reshape(-1)[0]) for value in transforms if value is not None and value.size == 1}
        shapes = [node.shape() for node in graph if node.op in PLACEHOLDERS]
        counts = {shape.dims[-1] for shape in shapes if shape is not None and shape.dims}
    fitting = {
        rate
        for rate in RATES
        for count in counts
        if isinstance(count, int) and count > 0 and count % rate == 0
        and windows and all(isinstance(n, int) and shortest <= 1000 * n / rate <= LONGEST for n in windows)
    }  # fmt: skip
    if USUAL_RATE in fitting:
        return None
    return max(fitting, default=None)


def check_is_heard(inputs: tuple[ModelInput, ...], file: str) -> None:
    """Refuses a recording for a model that hears none.

    Raises:
        UsageError: it does.
    """
    if len(inputs) != 1:
        raise UsageError(
            f"the model takes {counted(len(inputs), 'input')}, not one recording", hint="give an .npz file"
        )
    if math.prod(inputs[0].shape) == 1:
        raise UsageError(
            "the model does not say how long its recordings are",
            hint=f"give an .npz file; export and ship take a size, as in {shapes_option({inputs[0].name: (16000,)})}",
        )
    if is_plane(inputs[0].shape):
        raise UsageError(
            f"the model takes {list(inputs[0].shape)}, a picture or a spectrogram, and this is a recording",
            where=file,
            hint="give pictures, or an .npz file of arrays",
        )
    is_row = sum(size > 1 for size in inputs[0].shape) == 1 and max(inputs[0].shape) >= FEWEST_SAMPLES
    if not is_row or FINGERPRINT in inputs[0].name:
        raise UsageError(
            f"the model takes {list(inputs[0].shape)}, which is no recording but what is made of one, such as a "
            "spectrum",
            where=file,
            hint="a file behind a spectrum is judged by evaluate, with the graph that makes it in front; or give an "
            ".npz file of arrays",
        )
