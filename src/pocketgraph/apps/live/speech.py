"""Speech: a microphone's samples through the model's own spectrogram or MFCC, and words out of its scores."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from pocketgraph.apps.live.answers import SPECTROGRAM, Answer, Setting, Settings, Sound, timed
from pocketgraph.apps.live.word_recognition import SILENCE, WordRecognizer, may_repeat
from pocketgraph.datasets.class_labels import class_name
from pocketgraph.datasets.recordings import FEWEST_SAMPLES, USUAL_RATE, Resampler
from pocketgraph.datasets.sample_rate import FINGERPRINT, model_sample_rate
from pocketgraph.errors import UsageError
from pocketgraph.formats.tflite_metadata import metadata
from pocketgraph.graph import Graph, Node, canonical, node_name
from pocketgraph.graph.dtype import STRING
from pocketgraph.graph.model_file_graph import coded, has_codes, is_litert_file, numbers
from pocketgraph.graph.op_traits import PLACEHOLDERS, ops_with
from pocketgraph.graph.order import reachable
from pocketgraph.graph.tensor import Array
from pocketgraph.kernels.nn.activations import softmax
from pocketgraph.kernels.probabilities import are_shares
from pocketgraph.passes.training_switches import training_switches

MOST_SAMPLES = 16 * 192000  # 16 seconds at the highest rate
SHOWN_ROWS, SHOWN_COLUMNS = 64, 100


class SoundModel:
    """Runs one graph on pieces of sound.

    The samples go in behind the op that decodes a WAV file, where the graph has one (its rate beside them), else at the
    only float placeholder, which tells how many it takes. Of one that takes any number and makes a spectrum of them,
    a second is taken.

    Args:
        graph: takes a recording.
        output: the scores; by default what nothing consumes.
        rate: samples a second that it hears; by default what the graph tells, or 16000.
        threads: as in Session.

    Attributes:
        session: what runs it.
        switches: what other placeholders get, such as what a dropout keeps.
        is_open: whether it takes any number of samples.

    Raises:
        UsageError: the graph takes no sound.
    """

    def __init__(
        self, graph: Graph, output: str | None = None, *, rate: int | None = None, threads: int | None = None
    ) -> None:
        from pocketgraph.apps.picture_model import find_output
        from pocketgraph.runtime import Session

        self.output = canonical(output or find_output(graph))
        self.samples, self.rate_tensor, count, own_rate = _entrance(graph, node_name(self.output))
        self.rate = rate or own_rate or USUAL_RATE
        self.count = count or self.rate
        self.is_open = count is None and not self.rate_tensor
        self.session = Session(graph, threads=threads)
        needed = reachable(graph, [node_name(self.output)])
        self.switches = {name: value for name, value in training_switches(graph).items() if name in needed}
        self._declared = _shape(graph, self.samples)
        wanted = [self.output, *(_fingerprint(graph) or ())]
        self._wanted = wanted

    def __call__(self, samples: Array) -> tuple[Array, Array | None]:
        """The scores, float [classes], and the model's own spectrogram, [time, bins], if it has one.

        Args:
            samples: float32 [count] from -1 to 1; as many as one likes where the length is open.

        Raises:
            RunError: the graph cannot run.
        """
        found = self.session.run(self._wanted, self.feeds(samples))
        scores = numbers(self.session.graph, self.output, found[0]).reshape(-1)
        shown = np.asarray(found[1]) if len(found) > 1 else None
        return scores, None if shown is None else shown.reshape(shown.shape[-2:])

    def feeds(self, samples: Array) -> dict[str, Any]:
        """What is fed for samples, float32 [count]."""
        count = samples.size if self.is_open else self.count
        shape = _filled(self._declared, count, is_decoded=bool(self.rate_tensor))
        feed = coded(self.session.graph, self.samples, samples.reshape(shape).astype(np.float32))
        feeds: dict[str, Any] = {self.samples: feed, **self.switches}
        if self.rate_tensor:
            feeds[self.rate_tensor] = np.int32(self.rate)
        return feeds


def hears(graph: Graph) -> bool:
    """Whether a graph takes sound."""
    if any(node.op in ops_with("recording") for node in graph):
        return True
    about = metadata(graph.extra) if is_litert_file(graph) else None
    if about is not None and about.sample_rate > 0:
        return True
    sizes = [_shape(graph, node.name) for node in graph if _is_fed(graph, node)]
    if len(sizes) == 1 and sizes[0] is not None and sizes[0][-1] is None and _hears_any_length(graph, sizes[0]):
        return True
    is_long = len(sizes) == 1 and sizes[0] is not None and len(sizes[0]) < 3 and (sizes[0][-1] or 0) >= FEWEST_SAMPLES
    return is_long and any(node.op == "RFFT" for node in graph)  # other long rows are measurements


def _filled(shape: Sequence[int | None] | None, count: int, *, is_decoded: bool) -> tuple[int, ...]:
    """The shape of ``count`` samples of one recording: the batch and the channels are 1. Decoded recordings have their
    samples first, others behind an open batch."""
    if shape is None:
        return count, 1
    places = [axis for axis, size in enumerate(shape) if size == count]
    if not places:
        places = [axis for axis, size in enumerate(shape) if size is None]
        places = places[:1] if is_decoded else places[-1:]
    return tuple(count if axis in places[:1] else 1 for axis in range(len(shape)))


def _entrance(graph: Graph, output: str) -> tuple[str, str, int | None, int | None]:
    """The tensors of the samples and of their rate, how many samples there are, and the rate, as far as it tells."""
    needed = reachable(graph, [output])
    for node in graph:
        if node.op == "DecodeWav" and node.name in needed:
            count = node.attr("desired_samples")
            fixed = count if isinstance(count, int) and count > 0 else None
            return f"{node.name}:0", f"{node.name}:1", fixed, model_sample_rate(graph)
    places = [
        node
        for node in graph
        if node.name in needed
        and _is_fed(graph, node)
        and (node.dtype("dtype", STRING).is_floating or has_codes(graph, node.name))
    ]
    sized = [(node, shape) for node in places if (shape := _shape(graph, node.name)) is not None]
    best = max(sized, key=lambda pair: max((size or 0 for size in pair[1]), default=0), default=None)
    if len(places) == len(sized) == 1 and _hears_any_length(graph, sized[0][1]):
        return f"{sized[0][0].name}:0", "", None, model_sample_rate(graph)
    is_made = best is not None and FINGERPRINT in best[0].name
    if best is None or is_made or max((size or 0 for size in best[1]), default=0) < FEWEST_SAMPLES:
        hint = "give a model that hears: of wav_data, or of 16,000 samples"
        hint += ", as freeze.py of speech_commands makes of this training" if is_made else ""
        if is_litert_file(graph):
            hint += "; a file that takes a spectrum or an Mfcc is judged by evaluate, behind the graph that makes it: "
            hint += "that graph hears, such as the frozen.pb of ship beside the file"
        raise UsageError("this graph takes no sound", hint=hint)
    others = [node.name for node in places if node is not best[0]]
    rate = _fed_rate(graph, needed)
    if others:
        raise UsageError(f"this graph needs more than sound: {', '.join(others[:5])}")
    return f"{best[0].name}:0", rate, max(size or 0 for size in best[1]), model_sample_rate(graph)


def _fed_rate(graph: Graph, needed: set[str]) -> str:
    """The placeholder of samples a second, which an Mfcc takes beside its spectrogram; "" where none is fed."""
    rates = {node_name(node.data_inputs[1]) for node in graph if node.op == "Mfcc" and node.name in needed}
    return next((f"{name}:0" for name in sorted(rates) if _is_fed(graph, graph[name])), "")


def _is_fed(graph: Graph, node: Node) -> bool:
    """Whether values come in at a node; not where a retrained model takes features in place of those that it makes."""
    if node.op not in PLACEHOLDERS:
        return False
    default = graph.find_producer(node.data_inputs[0]) if node.data_inputs else None
    return default is None or default.op == "Const"


def _hears_any_length(graph: Graph, shape: Sequence[int | None]) -> bool:
    """Whether an input is a recording of any length: a row of numbers that the graph makes a spectrum of."""
    is_row = len(shape) in (1, 2) and shape[-1] is None and all(size in (None, 1) for size in shape)
    return is_row and any(node.op == "RFFT" for node in graph)


def _shape(graph: Graph, name: str) -> tuple[int | None, ...] | None:
    shape = graph.producer(name).shape()
    return None if shape is None or not shape.dims else shape.dims


def _fingerprint(graph: Graph) -> list[str]:
    """The tensor of the model's own features: its MFCC, else its spectrogram."""
    for op in ("Mfcc", "AudioSpectrogram"):
        found = [node.name for node in graph if node.op == op]
        if len(found) == 1:
            return [f"{found[0]}:0"]
    return []


HEARD = Setting("heard_ms", "Hear the last (ms)", 1000, 100, 30000, 100)
"""Of models that take any number of samples; what they need to hear at once, they do not tell."""


class SpeechApp(Settings):
    """Listens: a ring of the last second, run again and again, and words out of it. Where the model takes any number of
    samples, ``heard_ms`` says how long the ring is. Logits become shares by a softmax, as a word's threshold is one of
    shares."""

    kind = "speech"
    hears = True
    table: tuple[Setting, ...] = (
        Setting("threshold", "A word's average has to be over", 0.7),
        Setting("window_ms", "Average over (ms)", 500, 0, 5000, 10),
        Setting("suppression_ms", "No other word for (ms)", 1500, 0, 10000, 10),
        Setting("minimum_count", "Results in the window at least", 3, 1, 50, 1),
    )

    def __init__(self, model: SoundModel, labels: Sequence[str] = (), *, stride_ms: int = 30) -> None:
        self.model, self.labels, self.stride_ms = model, tuple(labels), stride_ms
        self.rate = model.rate
        self.heard_ms = 1000 * model.count // model.rate
        if model.is_open:
            self.table = (*SpeechApp.table, HEARD)
        self.threshold, self.window_ms, self.suppression_ms, self.minimum_count = 0.7, 500, 1500, 3
        self.begin()

    def begin(self) -> None:
        """Forgets what was heard."""
        count = self.model.rate * int(self.heard_ms) // 1000 if self.model.is_open else self.model.count
        self._ring = np.zeros(count, np.float32)
        self._waiting = np.zeros(0, np.float32)
        self._heard = 0
        self._resampler: Resampler | None = None
        self._recognizer: WordRecognizer | None = None
        self._shares = True

    def change(self, name: str, value: Any) -> None:
        """Changes a setting; a longer or shorter ring keeps the newest of what was heard."""
        super().change(name, value)
        if name == HEARD.name:
            count = self.model.rate * int(self.heard_ms) // 1000
            heard = self._ring[-count:]
            self._ring = np.concatenate([np.zeros(count - heard.size, np.float32), heard])

    def __call__(self, given: Sound) -> Answer:
        """Takes samples in; the answer is that of the last whole stride in them."""
        word = None
        averages: tuple[tuple[str, float], ...] = ()
        values: dict[str, Any] = {}
        took = 0.0
        for _ in self._strides(given):
            (scores, shown), took = timed(self.model, self._ring)
            self._shares = self._shares and are_shares(scores)
            scores = softmax(scores) if not self._shares and scores.size > 1 else scores
            found = self._words(scores, 1000 * self._heard // self.model.rate)
            word = found or word
            averages = tuple((self.name(int(i)), float(scores[i])) for i in np.argsort(-scores, kind="stable")[:5])
            if shown is not None:
                values[SPECTROGRAM] = _small(shown)
        values["time"] = round(self._heard / self.model.rate, 3)
        return Answer(classes=averages, word=word, values=values, milliseconds=took)

    def pass_by(self, given: Sound) -> None:
        """Takes samples in and does not run on them: what comes then is heard behind them."""
        for _ in self._strides(given):
            pass

    def _strides(self, given: Sound) -> Iterator[None]:
        """Moves the ring on by each whole stride of what is there now."""
        samples = np.asarray(given.samples, np.float32)
        if given.rate != self.model.rate:
            if self._resampler is None or self._resampler.given != given.rate:
                self._resampler = Resampler(given.rate, self.model.rate)
            samples = self._resampler(samples[:, None])[:, 0].astype(np.float32)
        self._waiting = np.concatenate([self._waiting, samples[-MOST_SAMPLES:]])
        stride = max(1, self.model.rate * self.stride_ms // 1000)
        while len(self._waiting) >= stride:
            self._ring = np.concatenate([self._ring, self._waiting[:stride]])[-self._ring.size :]
            self._waiting = self._waiting[stride:]
            self._heard += stride
            yield

    def _words(self, scores: Array, time_ms: int) -> tuple[str, float, float] | None:
        if self._recognizer is None:
            names = [self.name(i) for i in range(len(scores))]
            self._recognizer = WordRecognizer(names, repeats=may_repeat(self.labels))
        recognizer = self._recognizer
        recognizer.threshold, recognizer.window_ms = float(self.threshold), int(self.window_ms)
        recognizer.suppression_ms, recognizer.minimum_count = int(self.suppression_ms), int(self.minimum_count)
        heard = recognizer(scores, time_ms)
        is_word = heard.is_new and heard.label != SILENCE and not heard.label.startswith("_")
        return (heard.label, heard.score, time_ms / 1000) if is_word else None

    def name(self, index: int) -> str:
        """The label of a class."""
        return class_name(self.labels, index)


def _small(features: Array) -> list[list[int]]:
    """A spectrogram as whole numbers from 0 to 255, [time][bins], small enough to be sent often."""
    rows = features[:: max(1, len(features) // SHOWN_COLUMNS)]
    rows = rows[:, :SHOWN_ROWS].astype(np.float32)
    if rows.min(initial=0.0) >= 0:
        rows = np.log1p(rows)
    least, most = float(rows.min(initial=0.0)), float(rows.max(initial=0.0))
    scaled: list[list[int]] = np.rint((rows - least) * (255 / max(most - least, 1e-6))).astype(int).tolist()
    return scaled
