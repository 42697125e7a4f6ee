"""Says what is in recordings, one by one or word by word along a long one."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from io import TextIOWrapper

import numpy as np

from pocketgraph.apps.live.speech import SoundModel
from pocketgraph.apps.live.word_recognition import SILENCE, WordRecognizer
from pocketgraph.datasets.class_labels import best_classes, class_name
from pocketgraph.datasets.recordings import content_at, recording, resampled, sample_count, samples_at
from pocketgraph.errors import FormatError, UsageError, option
from pocketgraph.formats.files import opened
from pocketgraph.graph import Graph, canonical, node_name
from pocketgraph.graph.dtype import STRING
from pocketgraph.graph.op_traits import PLACEHOLDERS
from pocketgraph.graph.order import reachable
from pocketgraph.pages.quantities import counted


class WavLabeler:
    """Labels recordings with one graph, as the original label_wav.

    Args:
        graph: takes a recording's content, or its samples.
        labels: one a score.
        input_name: the tensor of a recording's content.
        output_name: the tensor of the scores.
        rate: samples a second that it hears; by default what the graph tells, or 16000.
        threads: as in Session.

    Raises:
        UsageError: the graph takes no sound.
    """

    def __init__(
        self,
        graph: Graph,
        labels: Sequence[str] = (),
        *,
        input_name: str | None = None,
        output_name: str | None = None,
        rate: int | None = None,
        threads: int | None = None,
    ) -> None:
        self.labels = tuple(labels)
        self.model = SoundModel(graph, output_name and node_name(output_name), rate=rate, threads=threads)
        needed = reachable(graph, [self.model.output])
        named = input_name or next(
            (
                node.name
                for node in graph
                if node.name in needed and node.op in PLACEHOLDERS and node.dtype("dtype") is STRING
            ),
            None,
        )
        self._content = canonical(named) if named is not None and node_name(named) in graph else None

    def __call__(self, path: str, top: int = 3) -> list[tuple[str, int, float]]:
        """(label, index, score) of the best, best first.

        Raises:
            FormatError: the file is no recording.
        """
        if self._content is not None:
            feeds = {self._content: np.array(content_at(path, self.model.rate), object), **self.model.switches}
            scores = np.asarray(self.model.session.run([self.model.output], feeds)[0]).reshape(-1)
        else:
            own = sample_count(path, self.model.rate) if self.model.is_open else None
            scores, _ = self.model(samples_at(path, self.model.rate, own or self.model.count))
        return [(class_name(self.labels, at), at, score) for at, score in best_classes(scores, self.labels, top)]


@dataclass(frozen=True)
class FoundWord:
    """A word in a long recording: its label, when it was told (ms), and its averaged score."""

    label: str
    time_ms: int
    score: float


def words_along(
    path: str, model: SoundModel, recognizer: WordRecognizer, *, clip_ms: int = 1000, stride_ms: int = 30
) -> Iterator[FoundWord]:
    """The words of a long recording, as test_streaming_accuracy finds them.

    Args:
        path: a WAV file of one channel.
        model: gives the scores of a clip.
        recognizer: makes words of them.
        clip_ms: how much the model is given at once.
        stride_ms: from one clip to the next.

    Raises:
        FormatError: the file is no recording, or has several channels.
        UsageError: the model takes another number of samples.
    """
    _, samples, rate = recording(path)
    if samples.shape[1] != 1:
        raise FormatError(f"Only mono .wav files can be used, but input has {samples.shape[1]} channels.", where=path)
    if rate != model.rate:
        samples, rate = resampled(samples, rate, model.rate).astype(np.float32), model.rate
    clip, stride = clip_ms * rate // 1000, max(1, stride_ms * rate // 1000)
    if clip != model.count:
        raise UsageError(
            f"the model takes {counted(model.count, 'sample')}, not {clip}",
            hint=f"pass {option('clip_duration_ms')}={1000 * model.count // rate}",
        )
    for start in range(0, len(samples) - clip, stride):
        time = 1000 * start // rate
        heard = recognizer(model(samples[start : start + clip, 0])[0], time)
        if heard.is_new and heard.label != SILENCE:
            yield FoundWord(heard.label, time, heard.score)


def said_words(path: str | os.PathLike[str]) -> list[tuple[str, int]]:
    """The words of a ground-truth file, ``label, milliseconds`` a line, by time; other lines are skipped.

    Raises:
        FormatError: it cannot be read, or a time is no number.
    """
    place = os.fspath(path)
    found = []
    try:
        with TextIOWrapper(opened(place), encoding="utf-8") as file:
            for line in file:
                parts = line.rstrip("\n").split(",")
                if len(parts) == 2:
                    try:
                        found.append((parts[0].strip(), int(float(parts[1]))))
                    except (ValueError, OverflowError):
                        raise FormatError(f"Wrong number format at line: {line.strip()}", where=place) from None
    except (OSError, UnicodeDecodeError):
        raise FormatError(f"Ground truth file '{place}' not found.", where=place) from None
    return sorted(found, key=lambda word: word[1])
