"""Compiled parts on disk, named by what they were made from, so that the next process maps instead of compiling.

A part is three files in the cache directory: ``NAME.json``, written last, says what the model must be;
``NAME.tflite`` is the model; ``NAME-CPU.xnn`` (with its checksum in ``….sum``) holds the weights as XNNPACK packed
them for this kind of CPU, and may be missing. A model that has holes in their place is ``NAME-weightless.tflite``. All
are written beside their place and renamed, so that a reader sees a whole file or none, however many processes write.
"""

from __future__ import annotations

import contextlib
import os  # paths are text here: importing pathlib and platformdirs takes a tenth of a warm start
import sys
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias

from pocketgraph.graph import DType
from pocketgraph.graph.record import Record
from pocketgraph.litert.cache_integrity import (
    PRIVATE,
    SEAL,
    Section,
    UntrustedError,
    checksum,
    created,
    may_hold_entries,
    read_ahead,
    sealed_text,
    unsealed,
    write_marked,
    write_sections,
)
from pocketgraph.litert.code_version import code_version, short_digest
from pocketgraph.litert.host import cpu, engine_version, is_utf8
from pocketgraph.part_files import ENDING, is_abandoned, written_whole

SUM = "sum"  # of the file of an entry, in the text beside it
WEIGHTLESS = "weightless"  # likewise: of a model file with holes the bytes that were written, where these begin and end
CERTIFICATE = "certificate"  # in the same text: whether the part gives right results, by kind of CPU
LARGE = 16 << 20  # bytes of a model, from which reading it is worth a thread
ENVIRONMENT = "POCKETGRAPH_CACHE"

Folder: TypeAlias = str | os.PathLike[str]
Specs: TypeAlias = Mapping[str, tuple[DType, tuple[int, ...]]]
"""The element type and shape of each input of a part, by tensor name."""


def directory(cache_dir: Folder | None = None) -> str | None:
    """The cache directory, made if need be: the argument, $POCKETGRAPH_CACHE, or the user's; None when not writable.

    An empty $POCKETGRAPH_CACHE means no cache. One that cannot be written to is told of once.
    """
    chosen = os.fspath(cache_dir) if cache_dir is not None else os.environ.get(ENVIRONMENT)
    if chosen is None:
        chosen = user_directory()
        if not os.path.isabs(chosen):
            unusable(f"there is no home directory ('{chosen}')")
            return None
    elif not chosen:
        return None
    if not is_utf8(chosen):
        unusable(f"LiteRT opens no files in {chosen!a}, which is not UTF-8")
        return None
    try:
        os.makedirs(chosen, mode=0o700, exist_ok=True)
        is_safe = may_hold_entries(chosen)
    except OSError as error:
        unusable(f"{chosen} cannot be made: {error.strerror}")
        return None
    if not os.access(chosen, os.W_OK | os.X_OK):
        unusable(f"{chosen} cannot be written to")
        return None
    if not is_safe:
        unusable(f"others may exchange files in {chosen}")
        return None
    return chosen


_warned: list[str] = []


def unusable(why: str) -> None:
    """Warns that compiled parts are not kept; once in a process, the first reason."""
    if not _warned:
        _warned.append(why)
        import warnings

        warnings.warn(
            f"compiled parts are not kept for the next process: {why} (set {ENVIRONMENT} to a directory with room,"
            " or to nothing for no cache)",
            RuntimeWarning,
            stacklevel=2,
        )


def user_directory() -> str:
    """What platformdirs says is the user's cache directory of this program."""
    if sys.platform == "linux":
        base = os.environ.get("XDG_CACHE_HOME", "")
        return os.path.join(base if base.strip() else os.path.expanduser("~/.cache"), "pocketgraph")
    from platformdirs import user_cache_dir

    return user_cache_dir("pocketgraph", appauthor=False)


def signature(inputs: Sequence[str], specs: Specs, outputs: Sequence[str]) -> str:
    """What a part takes and gives, as text: its inputs with type and shape, and its outputs."""
    taken = [f"{name}={specs[name][0].name}{list(specs[name][1])}" for name in inputs]
    return f"{'; '.join(taken)} -> {'; '.join(outputs)}"


def entry_name(model_key: str, part: str) -> str:
    """The name of the files of one part of one model, as this version of the code and of LiteRT makes it.

    Args:
        model_key: a digest of the model.
        part: what ``signature`` gave.
    """
    return short_digest("\0".join((code_version(), engine_version(), model_key, part)).encode(), 20)


class CacheEntry(Record):
    """A part that is in the cache and whole.

    Attributes:
        model: the LiteRT model file.
        packed: where the packed weights are or are to be.
        has_packed: whether they are there.
        about: what was stored beside the model.
    """

    model: str
    packed: str
    has_packed: bool
    about: dict[str, Any]

    @property
    def is_weightless(self) -> bool:
        """Whether the model file has holes in the place of weights that are packed: nothing but LiteRT, with these
        packed weights, can run it."""
        return WEIGHTLESS in self.about


def find(folder: str, name: str, meanwhile: Callable[[], object] | None = None) -> CacheEntry | None:
    """The part of this name, None when it is missing or damaged (a damaged one is removed), or has holes in the place
    of weights that were packed for another kind of CPU.

    Args:
        folder: the cache directory.
        name: from ``entry_name``.
        meanwhile: what is to be done anyway, while the packed weights of a large part are read by another thread.
    """
    sidecar, model, packed = _files(folder, name)
    try:
        about = unsealed(sidecar)
        if WEIGHTLESS in about:
            model = _weightless(model)
        if meanwhile is not None and os.path.exists(packed) and os.path.getsize(model) >= LARGE:
            with read_ahead((packed,)):
                meanwhile()
                _sum_of(model, about)
        if about["name"] != name or about[SUM] != _sum_of(model, about):
            raise ValueError
    except (FileNotFoundError, UntrustedError):
        return None
    except (OSError, ValueError, KeyError, TypeError):
        remove(folder, name)
        return None
    with contextlib.suppress(OSError):
        os.utime(sidecar)
    found = CacheEntry(model, packed, _packed_is_whole(packed), about)
    return None if found.is_weightless and not found.has_packed else found


def _sum_of(model: str, about: Mapping[str, Any]) -> str:
    """The checksum of what was written to a model file.

    Raises:
        ValueError: it has another size.
    """
    if WEIGHTLESS not in about:
        return checksum(model)
    written, _, size = about[WEIGHTLESS]
    if os.path.getsize(model) != size:
        raise ValueError
    return checksum(model, int(written))


def _files(folder: str, name: str) -> tuple[str, str, str]:
    """The paths of a part's sidecar, model and packed weights."""
    base = os.path.join(folder, name)
    return f"{base}.json", f"{base}.tflite", f"{base}-{cpu()}.xnn"


def _packed_is_whole(packed: str) -> bool:
    sealing = _sealing.get(packed)
    if sealing is not None and sealing.ident is not None:
        sealing.join()
    try:
        return bool(unsealed(f"{packed}.sum")[SUM] == checksum(packed))
    except (OSError, ValueError, KeyError, UntrustedError):
        return False


def _weightless(model: str) -> str:
    """The path of a part's model file with holes: another one, so that who was told of a whole file finds that."""
    return f"{model.removesuffix('.tflite')}-weightless.tflite"


def store(
    folder: str,
    name: str,
    content: Iterable[bytes | memoryview],
    about: dict[str, Any],
    *,
    packed: Sequence[Section] | None = None,
    holes: tuple[int, int] | None = None,
) -> CacheEntry | None:
    """Writes a part; None when the disk does not take it.

    Args:
        folder: the cache directory.
        name: from ``entry_name``.
        content: the model file's bytes in pieces.
        about: anything JSON can hold, to be found again beside the model.
        packed: the sections of the file of packed weights, where it is written too.
        holes: where the holes of a model file begin that has some behind its content, and where they and it end.
    """
    sidecar, model, beside = _files(folder, name)
    if holes is not None:
        model = _weightless(model)
    try:
        if packed is not None:
            with written_whole(beside) as part, created(part) as file:
                mark = write_sections(file, packed)
            write(f"{beside}.sum", sealed_text({SUM: mark}))
        with written_whole(model) as part, created(part) as file:
            mark = write_marked(file, content)
            record = {**about, "name": name, SUM: mark}
            if holes is not None:
                record[WEIGHTLESS] = [file.tell(), *holes]
                file.truncate(holes[1])
        write(sidecar, sealed_text(record))
    except OSError as error:
        for path in (model, beside) if packed is not None else (model,):
            with contextlib.suppress(OSError):
                os.unlink(path)
        unusable(f"{folder}: {error.strerror}")
        return None
    trim(folder, keep=name)
    return CacheEntry(model, beside, packed is not None or _packed_is_whole(beside), record)


def noted(about: Mapping[str, Any], member: str, what: str) -> Any:
    """What ``note`` was given for this kind of CPU; None where nothing was.

    Args:
        about: what is stored beside the model.
        member: of it.
        what: tells several notes apart.
    """
    found = about.get(member)
    return found.get(f"{cpu()} {what}".rstrip()) if isinstance(found, dict) else None


def certificate(about: Mapping[str, Any], engine: str = "") -> str:
    """What came of comparing a part's results with the reference engine's on this kind of CPU: ``"right"``,
    ``"wrong"``, ``"later"`` where it was put off, "" where nobody thought of it.

    Args:
        about: what is stored beside the model.
        engine: whose results, by name and version; "" for LiteRT's.
    """
    said = noted(about, CERTIFICATE, engine)
    return said if isinstance(said, str) else ""


def certify(folder: str, name: str, said: str, engine: str = "") -> None:
    """Notes beside a part's model what ``certificate`` is to give; does nothing where the disk does not take it."""
    note(folder, name, CERTIFICATE, engine, said)


def note(folder: str, name: str, member: str, what: str, said: Any) -> None:
    """Notes something of a part on this kind of CPU beside its model; does nothing where the disk does not take it.

    Args:
        folder: the cache directory.
        name: of the part.
        member: of what is stored beside the model.
        what: tells several notes apart.
        said: anything that JSON can hold.
    """
    sidecar, _, _ = _files(folder, name)
    try:
        about = unsealed(sidecar)
        about.pop(SEAL, None)
        before = about.get(member)
        about[member] = {**(before if isinstance(before, dict) else {}), f"{cpu()} {what}".rstrip(): said}
        write(sidecar, sealed_text(about))
    except (FileNotFoundError, UntrustedError, ValueError):
        return  # it was removed, or is somebody else's by now
    except OSError as error:
        unusable(f"{folder}: {error.strerror}")


_sealing: dict[str, threading.Thread] = {}
"""Who seals files of packed weights now, by their places."""


def seal_packed(part: str, packed: str) -> None:
    """Moves packed weights that XNNPACK has finished to their place and notes their checksum; large ones in another
    thread, for which the end of the process waits."""
    try:
        size = os.path.getsize(part)
    except OSError:
        return
    if size < LARGE:
        _seal(part, packed)
        return
    thread = threading.Thread(target=_seal, args=(part, packed), name="pocketgraph seal")
    _sealing[packed] = thread
    try:
        thread.start()
    except RuntimeError:  # the process is ending, or has too many threads
        _seal(part, packed)


def _seal(part: str, packed: str) -> None:
    try:
        with contextlib.suppress(OSError, UntrustedError):
            if os.path.getsize(part) == 0:
                return
            os.chmod(part, PRIVATE)
            mark = checksum(part)
            os.replace(part, packed)
            write(f"{packed}.sum", sealed_text({SUM: mark}))
    finally:
        with contextlib.suppress(OSError):
            os.unlink(part)  # where it was not moved
        _sealing.pop(packed, None)


def write(target: str, text: str) -> None:
    """Writes a small file whole or not at all; the disk is not waited for, a checksum finds what a crash leaves.

    Raises:
        OSError: the disk does not take it.
    """
    with written_whole(target) as part, created(part) as file:
        file.write(text.encode())


def remove(folder: str, name: str) -> None:
    """Takes a part out, its sidecar first; what others write of it now stays."""
    with contextlib.suppress(OSError):
        found = [entry for entry in os.listdir(folder) if entry.startswith(name)]
        for entry in sorted(found, key=lambda entry: not entry.endswith(".json")):
            if entry.endswith(ENDING) and not is_abandoned(entry):
                continue
            with contextlib.suppress(FileNotFoundError):
                os.unlink(os.path.join(folder, entry))


def trim(folder: str, keep: str = "", limit: int | None = None) -> None:
    """Removes the parts that ``cache_eviction.surplus`` names."""
    from pocketgraph.litert.cache_eviction import surplus  # only who writes needs it

    for stem in surplus(folder, keep, limit):
        remove(folder, stem)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_sealing.clear)
