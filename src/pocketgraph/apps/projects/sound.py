"""What a model takes of a recording, as numbers for the app that has to make it."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from pocketgraph.datasets.recordings import FEWEST_SAMPLES, USUAL_RATE
from pocketgraph.errors import PocketgraphError
from pocketgraph.exporting.model import ExportModel
from pocketgraph.formats import load
from pocketgraph.graph import Node, canonical, node_name
from pocketgraph.pages.quantities import counted
from pocketgraph.quantization.audio_preprocessing import AudioPreprocessing, audio_preprocessing_of
from pocketgraph.runtime.feeding.default_tensors import default_fetches


@dataclass(frozen=True)
class SoundParameters:
    """The samples of a recording, or AudioSpectrogram and Mfcc of a graph, with the attributes of TensorFlow's ops.

    Attributes:
        rate: samples a second.
        samples: how many of them the model hears; 0 where the graph does not say.
        window, stride: of a frame, in samples; 0 where the model takes samples.
        squared: whether the spectrogram has squared magnitudes.
        low, high: the hertz between which the mel bands lie.
        bands: how many there are; 0 where the model takes a spectrogram.
        count: how many coefficients come out.
    """

    rate: int
    samples: int
    window: int = 0
    stride: int = 0
    squared: bool = False
    low: float = 0.0
    high: float = 0.0
    bands: int = 0
    count: int = 0

    def facts(self) -> dict[str, Any]:
        """The same for a JSON file."""
        return asdict(self)

    def __str__(self) -> str:
        parts = [f"{counted(self.samples, 'sample')}, {self.rate} a second" if self.samples else
                 f"{self.rate} a second"]  # fmt: skip
        if self.window:
            parts.append(f"frames of {self.window}, {self.stride} apart, under a Hann window")
            parts.append(f"{'squared ' if self.squared else ''}magnitudes")
        if self.bands:
            parts.append(f"{self.bands} mel bands from {self.low:g} to {self.high:g} Hz")
            parts.append(f"the first {counted(self.count, 'coefficient')}")
        return "; ".join(parts)

    @property
    def ops(self) -> str:
        """The ops that an app computes as TensorFlow does, in words."""
        return "DecodeWav" if not self.window else "AudioSpectrogram and Mfcc" if self.bands else "AudioSpectrogram"


def sound_of(front: AudioPreprocessing) -> SoundParameters | None:
    """The numbers of a part that gives samples, their spectrogram or its Mfcc; None where it is anything else."""
    if len(front.shapes) != 1 or not canonical(next(iter(front.shapes))).endswith(":0"):
        return None
    graph = front.graph
    node, mfcc, spectrogram = graph.nodes.get(node_name(next(iter(front.shapes)))), None, None
    if node is not None and node.op == "Mfcc":
        mfcc, node = node, graph.nodes.get(node_name(node.data_inputs[0]))
    if node is not None and node.op == "AudioSpectrogram":
        spectrogram, tensor = node, canonical(node.data_inputs[0])
        node = graph.nodes.get(node_name(tensor)) if tensor.endswith(":0") else None
    samples = None if mfcc is not None and spectrogram is None else _samples(node)
    if samples is None:
        return None
    found: dict[str, Any] = {}
    if spectrogram is not None:
        found |= {"window": int(spectrogram.attr("window_size", 0)), "stride": int(spectrogram.attr("stride", 1)),
                  "squared": bool(spectrogram.attr("magnitude_squared", False))}  # fmt: skip
    if mfcc is not None:
        found |= {
            "low": float(mfcc.attr("lower_frequency_limit", 20.0)),
            "high": float(mfcc.attr("upper_frequency_limit", 4000.0)),
            "bands": int(mfcc.attr("filterbank_channel_count", 40)),
            "count": int(mfcc.attr("dct_coefficient_count", 13)),
        }  # fmt: skip
    return SoundParameters(front.rate or USUAL_RATE, samples, **found)


def sound_in_a_row(model: ExportModel) -> SoundParameters | None:
    """The samples that go into a model of sound as they are; None where nothing says that its row is one of samples."""
    sizes = [size for size in model.main.inputs[0].sizes or () if size > 1]
    if model.sample_rate is None or len(model.main.inputs) != 1 or len(sizes) != 1 or sizes[0] < FEWEST_SAMPLES:
        return None
    return SoundParameters(model.sample_rate, sizes[0]) if model.front is None and model.texts is None else None


def front_beside(frozen: str, model: ExportModel) -> AudioPreprocessing | None:
    """What a frozen graph does with a recording in front of a file that was made of it; None where it is not that
    which goes into the file.

    Args:
        frozen: the graph's path; "" for none.
        model: the file.
    """
    try:
        graph = load(frozen) if frozen else None
        front = audio_preprocessing_of(graph, default_fetches(graph)) if graph is not None else None
    except PocketgraphError:
        return None
    taken = [(canonical(port.name), port.sizes) for port in model.main.inputs]
    return front if front is not None and taken == [*front.shapes.items()] else None


def _samples(node: Node | None) -> int | None:
    """How many samples are decoded, 0 for all; None where they come from elsewhere."""
    if node is None or node.op != "DecodeWav" or int(node.attr("desired_channels", -1)) != 1:
        return None
    return max(int(node.attr("desired_samples", -1)), 0)
