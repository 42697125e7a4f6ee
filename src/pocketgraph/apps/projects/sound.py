"""What a graph does with a recording in front of the model, as numbers for the app that has to do it."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from pocketgraph.graph import Node, canonical, node_name
from pocketgraph.pages.quantities import counted
from pocketgraph.quantization.audio_preprocessing import AudioPreprocessing

RATE = 16000  # samples a second, where the graph does not say


@dataclass(frozen=True)
class MfccParameters:
    """AudioSpectrogram and Mfcc of a graph; the attributes are those of TensorFlow's ops.

    Attributes:
        rate: samples a second.
        samples: how many of them the model hears; 0 where the graph does not say.
        window, stride: of a frame, in samples.
        squared: whether the spectrogram has squared magnitudes.
        low, high: the hertz between which the mel bands lie.
        bands: how many there are.
        count: how many coefficients come out.
    """

    rate: int
    samples: int
    window: int
    stride: int
    squared: bool
    low: float
    high: float
    bands: int
    count: int

    def facts(self) -> dict[str, Any]:
        """The same for a JSON file."""
        return asdict(self)

    def __str__(self) -> str:
        seconds = f"{counted(self.samples, 'sample')}, " if self.samples else ""
        return (
            f"{seconds}{self.rate} a second; frames of {self.window}, {self.stride} apart, under a Hann window; "
            f"{'squared ' if self.squared else ''}magnitudes; {self.bands} mel bands from {self.low:g} to "
            f"{self.high:g} Hz; the first {self.count} coefficients"
        )


def sound_of(front: AudioPreprocessing) -> MfccParameters | None:
    """The numbers of a part that is a spectrogram and its Mfcc; None where it is anything else."""
    if len(front.shapes) != 1:
        return None
    graph = front.graph
    mfcc = graph.nodes.get(node_name(next(iter(front.shapes))))
    if mfcc is None or mfcc.op != "Mfcc":
        return None
    spectrogram = graph.nodes.get(node_name(mfcc.data_inputs[0]))
    if spectrogram is None or spectrogram.op != "AudioSpectrogram":
        return None
    samples = _samples(graph.nodes.get(node_name(spectrogram.data_inputs[0])))
    if samples is None or canonical(spectrogram.data_inputs[0]).endswith(":1"):
        return None
    return MfccParameters(
        front.rate or RATE, samples, int(spectrogram.attr("window_size", 0)), int(spectrogram.attr("stride", 1)),
        bool(spectrogram.attr("magnitude_squared", False)), float(mfcc.attr("lower_frequency_limit", 20.0)),
        float(mfcc.attr("upper_frequency_limit", 4000.0)), int(mfcc.attr("filterbank_channel_count", 40)),
        int(mfcc.attr("dct_coefficient_count", 13)),
    )  # fmt: skip


def _samples(node: Node | None) -> int | None:
    """How many samples are decoded, 0 for all; None where they come from elsewhere."""
    if node is None or node.op != "DecodeWav" or int(node.attr("desired_channels", -1)) != 1:
        return None
    return max(int(node.attr("desired_samples", -1)), 0)
