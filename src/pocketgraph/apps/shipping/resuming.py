"""What an earlier call of ``ship`` made, found again by the files of the model, data and labels, and the options."""

from __future__ import annotations

import contextlib
import glob
import hashlib
import math
import os
from collections.abc import Iterable, Iterator

from pocketgraph.apps.shipping.shipment import PAGE, STATE, Shipment, Tried
from pocketgraph.datasets.file_lists import files_in, of_list
from pocketgraph.datasets.sample_reading import Notify
from pocketgraph.errors import PocketgraphError
from pocketgraph.formats.files import check_folder, write_atomically
from pocketgraph.litert.cache_integrity import SEAL, sealed_text, unsealed_text
from pocketgraph.litert.digest import sha256_of
from pocketgraph.runtime.folder_turns import turn
from pocketgraph.version import VERSION


def earlier(folder: str, key: str) -> Shipment | None:
    """What is in the folder, of a call with the same key; None where that did not end, or a file is not as it was."""
    try:
        with open(os.path.join(folder, STATE), "rb") as file:
            kept = unsealed_text(file.read(), STATE)
        del kept[SEAL]
        if kept.pop("key") != key or kept.pop("sha256") != _digests(folder, kept["files"]):
            return None
        tried = [Tried(**each) for each in kept.pop("tried")]
        times = kept.pop("milliseconds")
        found = Shipment(
            **{**kept, "sizes": tuple(kept["sizes"])}, tried=tried, milliseconds=times and (times[0], times[1])
        )
    except (OSError, ValueError, TypeError, KeyError):
        return None
    found.folder, found.is_resumed = folder, True
    return found


@contextlib.contextmanager
def made_folder(folder: str, notify: Notify) -> Iterator[None]:
    """Makes a folder where there is none, and takes it away where the work fails before it holds a file.

    Another call that works in it is waited for, which ``notify`` is told: where it is the same, all is found there.
    """
    check_folder(folder)
    is_new = not os.path.isdir(folder)
    os.makedirs(folder, exist_ok=True)
    waiting = f"another call ships into '{folder}': waiting for it to end"
    with turn(folder, math.inf, lambda: notify(waiting)):
        is_new = is_new or not os.path.isdir(folder)  # the other may have failed, and taken it away
        os.makedirs(folder, exist_ok=True)
        try:
            yield
        except BaseException:
            if is_new:
                with contextlib.suppress(OSError):
                    os.rmdir(folder)
            raise


def outdate(folder: str) -> None:
    """Takes the page of an earlier call away, whose verdict is of other files than those that come now."""
    with contextlib.suppress(FileNotFoundError):
        os.unlink(os.path.join(folder, PAGE))


def keep(shipment: Shipment, key: str) -> None:
    """Writes what a later call finds."""
    kept = {name: value for name, value in vars(shipment).items() if name != "is_resumed"}
    kept |= {"key": key, "tried": [vars(each) for each in shipment.tried]}
    kept["sha256"] = _digests(shipment.folder, shipment.files)
    write_atomically(os.path.join(shipment.folder, STATE), sealed_text(kept, indent=1).encode())


def _digests(folder: str, names: Iterable[str]) -> dict[str, str]:
    """SHA-256 of each file of the folder."""
    paths = {name: os.path.join(folder, name) for name in names}
    return {name: sha256_of(path) for name, path in paths.items() if os.path.isfile(path)}


def is_within(path: str, folder: str) -> bool:
    """Whether a path is of something in a folder, or deeper."""
    return os.path.abspath(path).startswith(os.path.join(os.path.abspath(folder), ""))


def listed_files(data: str | os.PathLike[str] | None) -> list[str]:
    """The files that a list of samples names; none where the data are no list."""
    with contextlib.suppress(PocketgraphError):
        return of_list(os.fspath(data))[0] if data is not None else []
    return []


def key_of(paths: Iterable[str | os.PathLike[str] | None], asked: str, folder: str = "") -> str:
    """What a call is known by: the files of the model, the data and the labels, the options and this version.

    Args:
        paths: of files, folders or a checkpoint; None of what is not given.
        asked: the options.
        folder: where everything is written; where that is a folder inside of the data, it holds none.

    Raises:
        PocketgraphError: a file cannot be read.
    """
    digest = hashlib.sha256(os.fsencode(f"{VERSION} {asked}"))
    for path in (os.fspath(path) for path in paths if path is not None):
        names = [path] if os.path.exists(path) else sorted(glob.glob(f"{glob.escape(path)}.*"))  # a checkpoint's files
        if os.path.isdir(path):
            names = [name for name in files_in(path) if not (is_within(folder, path) and is_within(name, folder))]
        for name in names:
            try:
                known = os.stat(name) if os.path.exists(name) else os.lstat(name)
            except OSError as error:
                raise PocketgraphError(f"cannot be read: {error.strerror}", where=name) from None
            digest.update(os.fsencode(f"{name} {known.st_size} {known.st_mtime_ns}"))
    return digest.hexdigest()
