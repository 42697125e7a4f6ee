"""What a LiteRT file tells the task libraries: how pictures are normalized, and the labels kept behind the model.

Source of slots and numbers: metadata_schema.fbs of the TensorFlow Lite Support library (identifier ``M001``).
"""

from __future__ import annotations

import io
import zipfile
from dataclasses import dataclass

from pocketgraph.errors import FormatError, option
from pocketgraph.formats.flatbuffers import Table
from pocketgraph.formats.tflite import METADATA, facts
from pocketgraph.protobuf.wire import Buffer

IDENTIFIER = b"M001"
NORMALIZATION = 1
AUDIO = 4
"""AudioProperties among the properties of a content."""
LABELS = (2, 3)
"""Kinds of associated files with labels: of an axis, of values."""
MOST_BYTES = 1 << 26
"""Of all files behind a model, unpacked."""
PACKINGS = frozenset({zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED})


@dataclass(frozen=True)
class Metadata:
    """What the metadata of a file say.

    Attributes:
        name, description, version, author, license: of the model.
        inputs, outputs: the names of the tensors there.
        mean, std: of the first input's normalization; empty where there is none.
        labels: of the outputs; empty where there are none.
        files: the names of the files behind the model.
        sample_rate: samples a second of the first input; 0 where it is no sound.
    """

    name: str
    description: str
    version: str
    author: str
    license: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    mean: tuple[float, ...]
    std: tuple[float, ...]
    labels: tuple[str, ...]
    files: tuple[str, ...]
    sample_rate: int = 0

    @property
    def scaling(self) -> tuple[float | tuple[float, ...], float | tuple[float, ...]] | None:
        """Mean and std, each one number or one a channel; None where there is no normalization.

        Raises:
            FormatError: they are not as many, or pixels would be divided by 0.
        """
        if not self.mean and not self.std:
            return None
        if len(self.mean) != len(self.std) or 0 in self.std:
            raise FormatError(
                f"the metadata's normalization is impossible: mean {list(self.mean)}, std {list(self.std)}",
                hint=f"pass {option('input_mean', 'mean')} and {option('input_std', 'std')}",
            )
        if len(set(self.mean)) == len(set(self.std)) == 1:
            return self.mean[0], self.std[0]
        return self.mean, self.std


def metadata(buffer: Buffer, where: str = "") -> Metadata | None:
    """The metadata of a LiteRT file; None where it has none.

    Raises:
        FormatError: they are damaged.
    """
    content = facts(buffer, where).metadata.get(METADATA)
    if content is None or content[4:8] != IDENTIFIER:
        return None
    files = _files(buffer, where)
    try:
        root = Table.root(content)
        subgraphs = root.tables(3)
        inputs = subgraphs[0].tables(2) if subgraphs else []
        outputs = subgraphs[0].tables(3) if subgraphs else []
        mean, std = _normalization(inputs[0]) if inputs else ((), ())
        rate = _sample_rate(inputs[0]) if inputs else 0
        labels = next((found for output in outputs for found in (_labels(output, files),) if found), ())
        name, description, version, author, terms = (root.text(slot) for slot in (0, 1, 2, 4, 5))
        fed, made = (tuple(table.text(0) for table in tables) for tables in (inputs, outputs))
    except FormatError as error:
        raise FormatError(f"the metadata are damaged: {error.what}", where=where) from None
    return Metadata(name, description, version, author, terms, fed, made, mean, std, labels, tuple(files), rate)


def _normalization(tensor: Table) -> tuple[tuple[float, ...], tuple[float, ...]]:
    for unit in tensor.tables(4):
        options = unit.table(1)
        if unit.number(0, "u8") == NORMALIZATION and options is not None:
            return options.numbers(0, "f32"), options.numbers(1, "f32")
    return (), ()


def _sample_rate(tensor: Table) -> int:
    content = tensor.table(3)
    sound = content.table(1) if content is not None and content.number(0, "u8") == AUDIO else None
    return int(sound.number(0, "u32")) if sound is not None else 0


def _labels(tensor: Table, files: dict[str, bytes]) -> tuple[str, ...]:
    for file in tensor.tables(6):
        if file.number(2, "i8") in LABELS and file.text(0) in files:
            text = files[file.text(0)].decode("utf-8-sig", "replace").rstrip()
            return tuple(line.strip() for line in text.split("\n"))
    return ()


def _files(buffer: Buffer, where: str) -> dict[str, bytes]:
    """The files behind a model, by name."""
    if b"PK\5\6" not in bytes(buffer[-(1 << 16) - 22 :]):
        return {}
    try:
        with zipfile.ZipFile(io.BytesIO(bytes(buffer))) as archive:
            infos = archive.infolist()
            if sum(info.file_size for info in infos) > MOST_BYTES:
                raise FormatError(
                    f"the files behind the model have more than {MOST_BYTES >> 20} MB",
                    where=where,
                    hint="pack smaller ones behind it, or none: `zip -d` takes them out",
                )
            odd = next((info.filename for info in infos if info.compress_type not in PACKINGS), None)
            if odd is not None:
                raise FormatError(
                    f"'{odd}' behind the model is packed in a way that is not read here",
                    where=where,
                    hint="store or deflate it, as `zip` does",
                )
            return {info.filename: archive.read(info) for info in infos}
    except FormatError:
        raise
    except Exception as error:  # zipfile answers damage with exceptions of many kinds
        raise FormatError(f"the files behind the model are damaged: {error}", where=where) from None
