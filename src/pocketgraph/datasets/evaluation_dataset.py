"""Dataset to calibrate and judge models with: pictures, recordings, tables and arrays, with classes or without."""

from __future__ import annotations

import hashlib
import math
import os
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from pocketgraph.datasets import class_labels, csv_tables, file_lists, image_loading, named_arrays, recordings
from pocketgraph.datasets.image_loading import Scale
from pocketgraph.datasets.model_input import ModelInput, RecordingReader
from pocketgraph.datasets.named_arrays import SampleSource
from pocketgraph.datasets.picture_scaling import PictureScaling, picture_input
from pocketgraph.datasets.recordings import USUAL_RATE, rate_of, samples_at
from pocketgraph.datasets.sample_rate import check_is_heard
from pocketgraph.datasets.stored_arrays import SampleArray, sample_of, subset_of
from pocketgraph.datasets.text_samples import read_texts
from pocketgraph.errors import FormatError, UsageError, option
from pocketgraph.graph.tensor import Array
from pocketgraph.pages.quantities import counted

DEFAULT_MEAN, DEFAULT_STD = 0.0, 255.0


@dataclass
class Dataset:
    """Samples that are read when they are asked for, one at a time.

    Attributes:
        place: where they come from.
        inputs: what the model takes.
        files: the pictures or recordings, when they are such.
        arrays: one array an input with the samples along the first axis, when they are such.
        scaling: of pictures.
        front: makes the inputs out of a recording, for a model that reads such by itself.
        behind_texts: makes what a network takes out of a sample, where the part that reads texts (or makes spectra) is
            cut off.
        classes: the name of each sample's class, when folders, a list or arrays say it; else empty.
        targets: the numbers that the model should give for each sample, float64 [samples, size]; None when unknown.
        rate: samples a second of what the model hears.
        unnamed_columns: what the columns of a table were taken for that does not name them; else empty.
    """

    place: str
    inputs: tuple[ModelInput, ...]
    files: list[str] = field(default_factory=list)
    arrays: list[SampleArray] = field(default_factory=list)
    scaling: PictureScaling = field(default_factory=PictureScaling)
    classes: list[str] = field(default_factory=list)
    front: RecordingReader | None = None
    targets: Array | None = None
    rate: int = USUAL_RATE
    behind_texts: Callable[[Sequence[Array]], list[Array]] | None = None
    unnamed_columns: str = ""

    def __len__(self) -> int:
        return len(self.files) if self.files else len(self.arrays[0]) if self.arrays else 0

    def samples(self) -> Iterator[list[Array]]:
        """Each sample as one array an input, of the shape and type that the model takes.

        Raises:
            FormatError: a file is no picture or recording, or a damaged one.
        """
        if self.front is not None and self.files:
            for path in self.files:
                yield self.front(path, self.rate)
        else:
            yield from self._read() if self.behind_texts is None else map(self.behind_texts, self._read())

    def _read(self) -> Iterator[list[Array]]:
        if self.are_recordings:
            item = self.inputs[0]
            for path in self.files:
                heard = samples_at(path, self.rate, math.prod(item.shape))
                yield [heard.astype(item.dtype).reshape(item.shape)]
        elif self.are_decoded:
            for path in self.files:
                content = image_loading.content(path, self.inputs[0].file_form)
                yield [np.full(self.inputs[0].shape, content, object)]
        elif self.files:
            picture = picture_input(self.inputs, self.scaling)
            for path in self.files:
                yield [picture.feed(path, *self.pixel_scaling).reshape(self.inputs[0].shape)]
        else:
            for index in range(len(self)):
                yield [self._sample(array, index, item) for array, item in zip(self.arrays, self.inputs, strict=True)]

    def apart(self) -> Iterator[Dataset | list[Array]]:
        """Each sample as something that can be sent to another machine, which ``sample_apart`` makes the sample of.

        A file is read there; of arrays, and of recordings that a graph reads, the sample itself goes.
        """
        if not self.files or self.front is not None:
            yield from self.samples()
            return
        for path in self.files:
            yield replace(self, files=[path], classes=[], targets=None)

    def _sample(self, array: SampleArray, index: int, item: ModelInput) -> Array:
        values = sample_of(array, index)
        if array.dtype.kind == "O":  # texts, as they are fed
            return values if isinstance(values, np.ndarray) else np.asarray(values, item.dtype)
        if item.dtype.kind == "f" and (self.scaling.mean is not None or self.scaling.std is not None):
            values = self._scaled(values)
        values = self._cast(values, index, item)
        if values.size < math.prod(item.shape):  # of a model that takes so many at a time
            values = np.broadcast_to(values.reshape(1, *item.shape[1:]), item.shape)
        result: Array = values.reshape(item.shape)
        return result

    def _scaled(self, values: Array) -> Array:
        mean, std = self.scaling.mean or 0.0, self.scaling.std or 1.0
        count = max(len(part) if isinstance(part, tuple) else 1 for part in (mean, std))
        if count == 1 or values.shape[-1:] == (count,):
            return image_loading.normalise(values, mean, std)
        if values.shape[-3:-2] != (count,):
            raise UsageError(
                f"arrays of {list(values.shape)} have not the {count} channels that the model's metadata scale",
                where=self.place,
                hint=f"pass {option('input_mean')} and {option('input_std')}",
            )
        return np.moveaxis(image_loading.normalise(np.moveaxis(values, -3, -1), mean, std), -1, -3)

    def _cast(self, values: Array, index: int, item: ModelInput) -> Array:
        if item.dtype.kind not in "iu" or values.dtype == item.dtype:
            with np.errstate(over="ignore"):  # what is too large becomes infinite, which is judged as such
                return values.astype(item.dtype)
        limits = np.iinfo(item.dtype)
        if values.dtype.kind == "f":  # the largest integer may be none, the one after it is
            known = values.astype(np.float64)
            fits = (known >= limits.min) & (known < float(limits.max + 1)) & (known == np.rint(known))
        else:
            fits = (values >= limits.min) & (values <= limits.max)
        if not fits.all():
            odd = values[~fits].flat[0]
            raise UsageError(
                f"sample {index + 1} has {odd:g}, and the input '{item.name}' takes {item.dtype}", where=self.place,
                hint="scale and round the numbers as training did" if odd % 1 else "",
            )  # fmt: skip
        return values.astype(item.dtype)

    @property
    def repetitions(self) -> int:
        """How many times each sample is fed in one run, to a model that takes so many at a time; mostly once."""
        if self.are_pictures and not self.are_decoded:
            return picture_input(self.inputs, self.scaling).batch
        fed = [math.prod(item.shape) // max(math.prod(array.shape[1:]), 1)
               for array, item in zip(self.arrays, self.inputs, strict=True)] if self.arrays else []  # fmt: skip
        return max(fed, default=1)

    @property
    def are_pictures(self) -> bool:
        """Whether the samples are files of pictures."""
        return bool(self.files) and self.front is None and not self.are_recordings

    @property
    def are_decoded(self) -> bool:
        """Whether the samples are files of pictures that the model itself decodes."""
        return self.are_pictures and bool(self.inputs[0].file_form)

    @property
    def pixel_scaling(self) -> tuple[Scale, Scale]:
        """Mean and std: of a picture, ``(value - mean) / std`` is fed."""
        mean, std = self.scaling.mean, self.scaling.std
        return DEFAULT_MEAN if mean is None else mean, DEFAULT_STD if std is None else std

    @property
    def are_recordings(self) -> bool:
        """Whether the samples are files of recordings."""
        return bool(self.files) and file_lists.is_recording(self.files[0])

    def other_rates(self) -> Counter[int]:
        """How many recordings have which rate, in samples a second, other than the model's; they are resampled."""
        found = Counter(rate_of(path) for path in self.files) if self.are_recordings else Counter()
        return Counter({rate: count for rate, count in found.items() if rate not in (None, self.rate)})

    @property
    def is_unscaled(self) -> bool:
        """Whether pictures' bytes in an array go into a model of floats as they are, because nothing says how."""
        if self.scaling.mean is not None or self.scaling.std is not None:
            return False
        pairs = zip(self.arrays, self.inputs, strict=False)
        return any(array.dtype == np.uint8 and array.ndim > 2 and item.dtype.kind == "f" for array, item in pairs)

    def notes(self) -> Iterator[str]:
        """What is easily overlooked about these samples, a sentence each."""
        if self.is_unscaled:
            scaling = f"{option('input_mean')} and {option('input_std')} scale them"
            yield f"{self.place}: values from 0 to 255 are fed as they are; {scaling}"
        if self.unnamed_columns:
            yield f"{self.place}: columns are taken as {self.unnamed_columns}; a first row of these names tells others"
        others = self.other_rates()
        if others:
            rates = " or ".join(f"{rate:,}" for rate in sorted(others))
            yield (
                f"{self.place}: {others.total()} of {len(self)} recordings have {rates} samples a second and are "
                f"resampled to {self.rate:,}; {option('sample_rate')} tells another rate of the model"
            )

        if self.classes and os.path.isdir(self.place):
            suffixes = file_lists.RECORDINGS if self.are_recordings else file_lists.SUFFIXES
            if beside := file_lists.told_beside(self.place, suffixes if self.files else file_lists.TEXTS):
                yield f"{self.place}: {beside}"
        pictures = [path for path in self.files if not file_lists.is_recording(path)]
        if turned := image_loading.told_turned(pictures):
            yield f"{self.place}: {turned}"

    def take(self, count: int) -> Dataset:
        """At most the first ``count`` of the samples."""
        return self if len(self) <= count else self._chosen(np.arange(count))

    def after(self, count: int) -> Dataset:
        """Without the first ``count`` samples.

        Raises:
            UsageError: none would be left.
        """
        if count >= len(self):
            raise UsageError(
                f"there are {counted(len(self), 'sample')}; without the first {count} none is left", where=self.place
            )
        return self._chosen(np.arange(count, len(self)))

    def without(self, left_out: Sequence[int]) -> Dataset:
        """Without the samples of these numbers, from 0."""
        return self._chosen(np.delete(np.arange(len(self)), left_out)) if len(left_out) else self

    def _chosen(self, chosen: Array) -> Dataset:
        return replace(
            self,
            files=[self.files[index] for index in chosen] if self.files else [],
            arrays=[subset_of(array, chosen) for array in self.arrays],
            classes=[self.classes[index] for index in chosen] if self.classes else [],
            targets=None if self.targets is None else self.targets[chosen],
        )

    def without_broken(self) -> tuple[Dataset, dict[str, str]]:
        """The samples without the pictures and recordings that cannot be read, and what is wrong with each of these.

        Raises:
            FormatError: none can be read, or there is no such file.
        """
        if not self.files:
            return self, {}
        hears = self.front is not None or self.are_recordings
        problem = recordings.problem if hears else image_loading.problem
        broken = {path: text for path in self.files if (text := problem(path))}
        if len(broken) == len(self.files):
            raise FormatError(next(iter(broken.values())), where=self.files[0])
        return self._chosen(np.array([at for at, path in enumerate(self.files) if path not in broken])), broken

    def without_gaps(self) -> tuple[Dataset, str]:
        """The samples without those of arrays in memory that hold NaN or infinity, and a sentence about these.

        Raises:
            UsageError: none would be left.
        """
        is_whole = np.ones(len(self), bool)
        for array, item in zip(self.arrays, self.inputs, strict=False):
            if isinstance(array, np.ndarray) and array.dtype.kind == "f":
                most = np.finfo(item.dtype).max if item.dtype.kind == "f" else np.inf
                is_known = np.isfinite(array) & (np.abs(array) <= most)
                is_whole &= is_known.reshape(len(array), -1).all(axis=1)
        gaps = np.flatnonzero(~is_whole)
        if not gaps.size:
            return self, ""
        if gaps.size == len(self):
            raise UsageError(
                "each sample holds NaN or infinity", where=self.place, hint="fill the gaps as was done in training"
            )
        first = int(gaps[0]) + 1
        which = f"sample {first} is" if gaps.size == 1 else f"{gaps.size} samples, the first being {first}, are"
        verb = "holds" if gaps.size == 1 else "hold"
        words = f"{self.place}: {which} left out, which {verb} NaN or infinity"
        return self._chosen(np.flatnonzero(is_whole)), words

    def identity(self) -> str:
        """What tells these samples from others: which they are, and of arrays a digest."""
        if self.files:
            stats = [os.stat(path) for path in self.files if os.path.exists(path)]
            return repr([self.files, self.rate, [(stat.st_size, stat.st_mtime_ns) for stat in stats]])
        return repr([(array.shape, str(array.dtype), _digest(array)) for array in self.arrays])

    def truth(self, names: Sequence[str] | None, scores: int) -> list[int] | None:
        """The index of each sample's class; None when the data do not tell.

        Args:
            names: the name of each class, in the order of the model's scores.
            scores: how many scores the model gives.

        Raises:
            UsageError: there are fewer names than scores, or a sample's class is not among those of the scores.
        """
        return class_labels.indices(self.classes, names, scores)

    def wanted(self, size: int) -> Array | None:
        """What the model should give for each sample, float64 [samples, size]; None when the data do not tell."""
        return None if self.targets is None or self.targets.shape[1] != size else self.targets


def own_answer(answer: Array, repetitions: int) -> Array:
    """The part of an answer that is of the sample itself, where it was fed so many times in one run."""
    return answer[:1] if repetitions > 1 and answer.ndim > 1 and len(answer) == repetitions else answer


def sample_apart(part: Dataset | list[Array]) -> list[Array]:
    """The sample of a part that ``Dataset.apart`` gave."""
    return next(part.samples()) if isinstance(part, Dataset) else part


def _digest(array: SampleArray) -> str:
    digest = hashlib.sha256()
    for sample in array:
        content = sample.tolist() if sample.dtype.kind == "O" else np.ascontiguousarray(sample).tobytes()
        digest.update(content if isinstance(content, bytes) else repr(content).encode())
    return digest.hexdigest()


def open_dataset(
    source: SampleSource,
    inputs: tuple[ModelInput, ...],
    scaling: PictureScaling | None = None,
    front: RecordingReader | None = None,
    rate: int | None = None,
) -> Dataset:
    """Dataset for a model.

    Args:
        source: a folder of pictures or recordings (folders inside are classes), an ``.npz`` or ``.npy`` file with
            samples along the first axis (arrays named like the inputs, and perhaps ``labels``), a table (``.csv``,
            ``.tsv``), or a text file with one picture or recording a line, perhaps followed by a tab or blanks and its
            class; or the arrays themselves, by the inputs' names, or the only one. For inputs of texts see
            ``text_samples.read_texts``.
        inputs: what the model takes.
        scaling: of pictures.
        front: makes the inputs out of a recording, for a model that reads such by itself.
        rate: samples a second of what the model hears; None for what its front or its input says, else 16,000.
            Recordings of other rates are resampled.

    Raises:
        UsageError: there are no samples, or arrays do not fit the model.
        FormatError: the place is missing or none of these.
    """
    how = scaling or PictureScaling()
    data = _of_source(source, inputs, how, front is None and any(item.takes_text for item in inputs))
    if not len(data):
        raise UsageError("there are no samples here", where=data.place)
    if not data.files:
        return data
    if not inputs:
        raise named_arrays.without_inputs(data.place)
    data.rate = rate or (front.rate if front is not None else inputs[0].rate) or USUAL_RATE
    if front is not None:
        data.front = front
    elif file_lists.is_recording(data.files[0]):
        check_is_heard(inputs, data.files[0])
    elif len(inputs) != 1 or not inputs[0].file_form:
        picture_input(inputs, how)
    return data


def _of_source(
    source: SampleSource, inputs: tuple[ModelInput, ...], scaling: PictureScaling, reads_texts: bool
) -> Dataset:
    """The samples of each kind of source, as ``open_dataset`` takes them."""
    name = os.fspath(source) if isinstance(source, (str, os.PathLike)) else named_arrays.IN_MEMORY
    if reads_texts:
        texts, classes, targets = read_texts(source, inputs)
        return Dataset(name, inputs, arrays=[*texts], classes=classes, targets=targets)
    if named_arrays.are_arrays(source):
        arrays, classes, targets = named_arrays.of_inputs(source, inputs)
        return Dataset(name, inputs, arrays=arrays, scaling=scaling, classes=classes, targets=targets)
    if (file_lists.is_picture(name) or file_lists.is_recording(name)) and os.path.isfile(name):
        return Dataset(name, inputs, [name], scaling=scaling)
    if os.path.isdir(name):
        files, classes = file_lists.of_folder(name, without_strays=True)
        return Dataset(name, inputs, files, scaling=scaling, classes=classes)
    if csv_tables.is_table(name):
        sizes, names = [math.prod(item.shape) for item in inputs], [item.column for item in inputs]
        columns, classes, is_named = csv_tables.read_table(name, sizes, names)
        order = "" if is_named or len(inputs) == 1 else csv_tables.columns_by_order(names, sizes)
        targets = class_labels.numbers_of(classes)
        return Dataset(name, inputs, [], [*columns], scaling, classes, targets=targets, unnamed_columns=order)
    files, classes = file_lists.of_list(name)
    return Dataset(name, inputs, files, scaling=scaling, classes=classes)
