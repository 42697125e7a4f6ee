"""How a compiled part is opened from the cache: all that a warm start needs."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np

from pocketgraph.errors import RunError
from pocketgraph.litert import cache
from pocketgraph.litert.cache import Folder, Specs
from pocketgraph.litert.code_version import short_digest
from pocketgraph.litert.cost_model import LENT_FROM, LENT_WORK, PACKED_FROM, REPEATED_FROM, UPGRADED_AFTER
from pocketgraph.litert.executable import Executable, Opener
from pocketgraph.litert.running.runner import PACKED_TYPES, RECYCLING, PlainRunner, Runner, prepare
from pocketgraph.litert.sixteen_bits import computed_in
from pocketgraph.part_files import part_name


def lookup(
    model_key: str,
    inputs: Sequence[str],
    outputs: Sequence[str],
    input_specs: Specs,
    *,
    threads: int = 1,
    cache_dir: Folder | None = None,
    opener: Opener | None = None,
    in_tiers: bool = False,
    whole: bool = False,
) -> Executable | None:
    """A part that an earlier ``compile`` with the same arguments left in the cache, and that nobody found wrong."""
    folder = cache.directory(cache_dir)
    if folder is None:
        return None
    name = cache.entry_name(model_key, cache.signature(inputs, input_specs, outputs))
    try:
        found = open_part(folder, name, threads, opener, input_specs, in_tiers=in_tiers, whole=whole)
    except RunError:  # who compiles it anew will say so
        return None
    return found if isinstance(found, Executable) else None


def open_part(
    folder: str, name: str, threads: int, opener: Opener | None, specs: Specs, *, in_tiers: bool, whole: bool = False
) -> Executable | Literal["wrong"] | None:
    """As ``open_entry``, of the program for parts of a batch, or for so many threads, where there is one. What takes
    a batch whole is another engine's until it is noted that LiteRT does not cut it for so many threads.

    With ``in_tiers``, where the part is missing, what was compiled for its first runs in its place.
    """
    names = (name,) if threads == 1 else (of_several_threads(name), name)
    cut = (of_microbatches(name, threads),) if may_be_cut(specs, opener) else ()
    for each in (*cut, *names):
        found = open_entry(folder, each, threads, opener, whole=whole)
        if found is None and in_tiers:
            found = open_entry(folder, first_tier(each), threads, opener, whole=whole)
            if isinstance(found, Executable):
                found.next_tier = folder, each
        if (
            isinstance(found, Executable)
            and cut
            and each in names
            and not cache.noted(found.about, UNCUT, str(threads))
        ):
            found.close()
        elif found is not None:
            return found
    return None


UNCUT = "uncut"
"""The note of a part whose batch stays whole, by the number of threads."""


def of_several_threads(name: str) -> str:
    """The name of a part's program for several threads, where that is another one than the one for one thread."""
    return short_digest(f"{name} several threads".encode(), 20)


def of_microbatches(name: str, threads: int) -> str:
    """The name of a part's program whose batch so many threads compute part by part, by the name of
    the one for the whole."""
    return short_digest(f"{name} microbatches of {threads} threads".encode(), 20)


def may_be_cut(specs: Specs, opener: Opener | None) -> bool:
    """Whether a part takes a batch that LiteRT may compute part by part."""
    batches = {shape[:1] for _, shape in specs.values()}
    return opener is None and len(batches) == 1 and batches.pop() > (1,)


def first_tier(name: str) -> str:
    """The name of the part that was compiled for the first runs of another one, by that one's name."""
    return short_digest(f"{name} first tier".encode(), 20)


def open_entry(
    folder: str, name: str, threads: int, opener: Opener | None = None, *, whole: bool = False
) -> Executable | Literal["wrong"] | None:
    """The part of this name in the cache; None when it is missing or damaged, "wrong" when its results were.

    Args:
        folder: the cache directory.
        name: of the part.
        threads: how many to compute with.
        opener: makes the runner; LiteRT by default.
        whole: whether the model file must hold all weights, since another engine may read it.

    Raises:
        RunError: another engine does not take it.
    """
    entry = cache.find(folder, name, None if opener else prepare)
    if entry is None or (entry.is_weightless and (whole or opener not in (None, LITERT))):
        return None
    if entry.about.get("by_several") not in (None, threads > 1):
        return None
    opener = opener or LITERT
    if cache.certificate(entry.about, opener.engine) == "wrong":
        return "wrong"
    try:
        runner = opener.open(entry, threads) if entry.about["operations"] else None
        return Executable(entry.about, runner, None, threads, (folder, name), opener.engine)
    except RunError:
        if opener is not LITERT:
            raise
        cache.remove(folder, name)
        return None
    except OSError:  # its files are gone
        return None
    except (LookupError, TypeError, ValueError, AttributeError, OverflowError):
        cache.remove(folder, name)
        return None


def takes_packed(about: Mapping[str, Any]) -> bool:
    """Whether what runs packed weights takes what goes into a part and comes out of it.

    Args:
        about: what is kept beside the model.
    """
    types = [computed_in(dtype) for _, dtype, _ in (about["inputs"][index] for index in about["fed"])]
    types += [dtype for _, dtype in about["computed"]]
    is_odd = not about["fed"] or any(name not in PACKED_TYPES for name in types)
    return not is_odd and os.name == "posix"  # elsewhere a file in use cannot be renamed


def runner_for(entry: cache.CacheEntry, threads: int) -> Runner:
    """Loads the model of a cache entry, with its packed weights where that pays and the types allow it."""
    count = entry.about.get("microbatches", 1)
    if count == 1:
        return _runner_of_all(entry, entry.about, threads)
    from pocketgraph.litert.running.microbatch_runner import MicrobatchRunner, of_one

    about = of_one(entry.about)
    return MicrobatchRunner(lambda: _runner_of_all(entry, about, 1), threads, count)


def _runner_of_all(entry: cache.CacheEntry, about: Mapping[str, Any], threads: int) -> Runner:
    """As ``runner_for``, where ``about`` is what is known of the model file, which may be for a part of a batch."""
    threads = 1 if about.get("one_thread") else threads
    repeated = about.get("repeated", 0)
    shapes = [shape for shape, _ in about["computed"]]
    outputs = [(tuple(shape), np.dtype(dtype)) for shape, dtype in about["computed"]]
    if entry.is_weightless:
        from pocketgraph.litert.running.weightless_runner import WeightlessRunner

        return WeightlessRunner(entry.model, entry.packed, threads, outputs, entry.about[cache.WEIGHTLESS][1])
    is_small = not entry.packed or (about["bytes"] < PACKED_FROM and repeated < REPEATED_FROM)
    if is_small and takes_packed(about) and _moves_much(about):
        from pocketgraph.litert.upgrading import UpgradingRunner

        plain = PlainRunner(entry.model, threads, shapes)
        return UpgradingRunner(plain, UPGRADED_AFTER, lambda: _in_place(entry, threads, outputs), (LENDING, RECYCLING))
    if is_small or not takes_packed(about):
        return PlainRunner(entry.model, threads, shapes)
    if (
        about["bytes"] < PACKED_FROM and repeated < PACKED_FROM
    ):  # packing every time is quicker, as long as times are few
        from pocketgraph.litert.upgrading import UpgradingRunner

        plain = PlainRunner(entry.model, threads, shapes)
        return UpgradingRunner(plain, UPGRADED_AFTER, lambda: _packed(entry, threads, outputs))
    if entry.has_packed:
        return _packed(entry, threads, outputs)
    try:
        return _packed(entry, threads, outputs)
    except (RunError, OSError):
        return PlainRunner(entry.model, threads, shapes)


def unpacked_runner(entry: cache.CacheEntry, threads: int) -> Runner:
    """As ``runner_for``, without the pass ``packed_weights``."""
    about = entry.about
    shapes = [shape for shape, _ in about["computed"]]
    return PlainRunner(entry.model, 1 if about.get("one_thread") else threads, shapes)


def _moves_much(about: Mapping[str, Any]) -> bool:
    """Whether copying the large arrays that go into a part and come out of it takes long beside computing."""
    from pocketgraph.kernels.recycled_arrays import LEAST

    given = [(shape, computed_in(dtype)) for _, dtype, shape in (about["inputs"][index] for index in about["fed"])]
    sizes = [math.prod(shape) * np.dtype(dtype).itemsize for shape, dtype in (*given, *about["computed"])]
    moved = sum(size for size in sizes if size >= LEAST)  # small ones are copied, which takes longer than LiteRT's own
    return bool(moved >= max(LENT_FROM, about["work"] / LENT_WORK))


def _in_place(entry: cache.CacheEntry, threads: int, outputs: Sequence[tuple[tuple[int, ...], Any]]) -> Runner:
    from pocketgraph.litert.running.in_place_runner import InPlaceRunner

    return InPlaceRunner(entry.model, threads, outputs)


LENDING = "lent_arrays"
"""The pass by which parts that run often take large arrays where they lie."""
PACKED = "packed_weights"
"""The pass by which weights that XNNPACK has packed are kept, and mapped by the next one who opens the part."""
LITERT = Opener("", runner_for)
UNPACKED = Opener("", unpacked_runner)


def _packed(entry: cache.CacheEntry, threads: int, outputs: Sequence[tuple[tuple[int, ...], Any]]) -> Runner:
    """The runner of packed weights; packs them where that was not done yet.

    Raises:
        RunError: LiteRT does not take the model, or the disk not its packed weights.
        OSError: the files are gone.
    """
    from pocketgraph.litert.running.packed_runner import PackedRunner

    if entry.has_packed:
        return PackedRunner(entry.model, entry.packed, threads, outputs)
    from pocketgraph.litert.writing.free_disk_space import room_for

    part = part_name(entry.packed)
    why = room_for(part, os.path.getsize(entry.model))
    if why:
        cache.unusable(f"{os.path.dirname(part)}: {why}")
        raise RunError(f"no room for packed weights: {why}")
    try:
        return PackedRunner(entry.model, part, threads, outputs)
    finally:
        cache.seal_packed(part, entry.packed)
