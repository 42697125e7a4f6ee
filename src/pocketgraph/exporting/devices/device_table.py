"""The devices that estimates are made for, each with what was published of it; and one's own."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, NamedTuple

from pocketgraph.errors import FormatError, MissingExtraError, UsageError, did_you_mean, option
from pocketgraph.exporting.devices.family_times import FAMILIES, cost_family
from pocketgraph.formats.files import mapped, near
from pocketgraph.package_data import text_beside

if sys.version_info >= (3, 11):
    import tomllib
else:
    try:
        import tomli as tomllib
    except ImportError:
        raise MissingExtraError(
            "the table of devices is TOML, which Python reads from 3.11 on", hint="pip install 'pocketgraph[fit]'"
        ) from None

MEBIBYTE = 1 << 20
KINDS = ("phone", "board", "microcontroller", "browser", "own")
PRECISIONS = {"float": "float", "int8": "8 bits"}
"""What estimates are made for, each with what people call it."""
LONGEST_NAME = 60  # letters
LARGEST = 1e15  # of any number in a row, whatever its unit


class OwnBenchmark(NamedTuple):
    """A model that ``benchmark_model`` ran on a device: operations by op, and milliseconds of a run."""

    operations: Mapping[str, int]
    milliseconds: float
    least: float
    most: float


@dataclass(frozen=True)
class Device:
    """A device, and what is known of its speed.

    Attributes:
        name: what ``--device`` calls it.
        title: what it is.
        kind: one of ``KINDS``.
        year: when it came out.
        source: where the figures are from.
        memory: bytes of memory; None where nobody said.
        flash: bytes that weights can lie in without being in memory; None where they are in memory.
        gflops: billions of operations a second, where that is all that is known.
        published: milliseconds of one run, by precision and by model.
        speeds: billions of operations a second by family, measured there by oneself.
        own: what was measured there by oneself.
    """

    name: str
    title: str
    kind: str
    year: int
    source: str
    memory: int | None = None
    flash: int | None = None
    gflops: float | None = None
    published: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    speeds: Mapping[str, float] = field(default_factory=dict)
    own: OwnBenchmark | None = None


@cache
def devices() -> tuple[Device, ...]:
    """The devices of devices.toml, in its order."""
    text = text_beside(__file__, "devices.toml")
    return _devices(text, "devices.toml")


@cache
def published_models() -> Mapping[str, Mapping[str, float]]:
    """Milliseconds of each family of operations of the published models, on the machine of the table."""
    text = text_beside(__file__, "published_models.toml")
    return dict(tomllib.loads(text))


def chosen_devices(names: Sequence[str], file: str | os.PathLike[str] | None = None) -> tuple[Device, ...]:
    """The devices of these names, and those of one's own file; all of the table without either.

    Raises:
        UsageError: there is no device of a name.
        FormatError: the file is none.
    """
    own = read_device_file(file) if file is not None else ()
    known = {device.name: device for device in (*devices(), *own)}
    for name in names:
        if name not in known:
            hint = did_you_mean(name, known) or f"{option('device')}=list shows them"
            raise UsageError(f"there is no device '{name}'", hint=hint)
    return tuple(known[name] for name in dict.fromkeys(names)) or own or devices()


def read_device_file(path: str | os.PathLike[str]) -> tuple[Device, ...]:
    """One's own devices: what benchmark_model printed there as JSON, or rows as devices.toml has them.

    Raises:
        FormatError: the file is neither, or lacks what is needed.
        UsageError: there is no such file.
    """
    where = os.fspath(path)
    if not os.path.exists(where):
        raise UsageError("there is no such file", where=where, hint=near(where))
    try:
        text = bytes(mapped(where)).decode("utf-8-sig")
    except UnicodeDecodeError:
        raise FormatError("this is no text", where=where) from None
    if text.lstrip().startswith("{"):
        return (_measured_device(text, where),)
    return _devices(text, where)


def _devices(text: str, where: str) -> tuple[Device, ...]:
    try:
        rows = tomllib.loads(text).get("device")
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise FormatError(
            f"this is no file of devices: {error}", where=where,
            hint=f"{option('device_file')} takes what benchmark_model prints as JSON, or rows of TOML",
        ) from None  # fmt: skip
    if not isinstance(rows, list) or not rows or not all(isinstance(row, dict) for row in rows):
        raise FormatError("there are no devices in it", where=where, hint="a row begins with [[device]]")
    return tuple(_device(row, where) for row in rows)


def _device(row: Mapping[str, Any], where: str) -> Device:
    name = row.get("name")
    if not isinstance(name, str) or not 0 < len(name) <= LONGEST_NAME:
        raise FormatError("a device has no name", where=where, hint='add name = "…"')
    place = f"{where}: device '{name}'"

    def number(key: str) -> float | None:
        value = row.get(key)
        if value is None:
            return None
        if not isinstance(value, int | float) or isinstance(value, bool) or not 0 < value <= LARGEST:
            raise FormatError(f"{key} is not a number above 0 and at most {LARGEST:g}", where=place)
        return float(value)

    published = {}
    for precision in PRECISIONS:
        pairs = row.get(precision, {})
        if not isinstance(pairs, dict):
            raise FormatError(f"{precision} is no table of milliseconds by model", where=place)
        for model, milliseconds in pairs.items():
            if model not in published_models():
                raise FormatError(
                    f"'{model}' is none of the published models", where=place,
                    hint=did_you_mean(model, published_models()),
                )  # fmt: skip
            if not isinstance(milliseconds, int | float) or not 0 < milliseconds <= LARGEST:
                raise FormatError(f"the time of '{model}' is not a number above 0 and at most {LARGEST:g}", where=place)
        if pairs:
            published[precision] = {model: float(milliseconds) for model, milliseconds in pairs.items()}
    memory, flash, gflops = number("memory_mb"), number("flash_mb"), number("gflops")
    if not published and gflops is None:
        raise FormatError(
            "nothing says how fast it is", where=place,
            hint="add gflops = …, or a table [device.float] of milliseconds by published model",
        )  # fmt: skip
    kind = row.get("kind", "own")
    if kind not in KINDS:
        raise FormatError(f"kind is none of {', '.join(KINDS)}", where=place)
    return Device(
        name, str(row.get("title", name)), kind, int(number("year") or 0), str(row.get("source", "")),
        None if memory is None else int(memory * MEBIBYTE), None if flash is None else int(flash * MEBIBYTE),
        gflops, published,
    )  # fmt: skip


def _measured_device(text: str, where: str) -> Device:
    """The device on which benchmark_model printed this."""
    hint = "make it there: what benchmark_model prints as json"
    try:
        found = json.loads(text)
        operations, times, machine = found["flops"]["by_op"], found["by_type"], found["machine"]
        speeds = _speeds({op: float(count) for op, count in operations.items()}, times)
        runs = {key: float(found["no_stats"][key]) / 1e3 for key in ("average", "min", "max")}
        whole = float(found["flops"]["total"]) / runs["average"] / 1e6
        memory = machine.get("memory_bytes")
        title = f"{machine['processor']}, {found['threads']} thread{'s' * (found['threads'] != 1)}"
        model = os.path.basename(str(found["model"]))
    except (ValueError, KeyError, TypeError, AttributeError, ArithmeticError, RecursionError) as error:
        raise FormatError(
            f"this is not what benchmark_model prints as JSON ({type(error).__name__}: {error})", where=where, hint=hint
        ) from None
    if not 0 < whole < float("inf"):
        raise FormatError("the model that ran there has no operations to tell a speed from", where=where, hint=hint)
    name = os.path.splitext(os.path.basename(where))[0][:LONGEST_NAME]
    return Device(
        name, title, "own", 0, f"benchmark_model of {model} there", memory if isinstance(memory, int) else None,
        gflops=whole, speeds=speeds,
        own=OwnBenchmark(dict(operations), runs["average"], runs["min"], runs["max"]),
    )  # fmt: skip


def _speeds(operations: Mapping[str, float], times: Mapping[str, float]) -> dict[str, float]:
    """Billions of operations a second of each family that has both operations and microseconds."""
    speeds = {}
    for family in FAMILIES:
        ops = [op for op in operations if cost_family(op) == family]
        took = sum(float(times.get(op, 0.0)) for op in ops)
        if took > 0:
            speeds[family] = sum(operations[op] for op in ops) / took / 1e3
    return speeds
