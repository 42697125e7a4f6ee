"""Tables, templates and scripts beside the modules that read them; the loader reads them, be they in an archive."""

from __future__ import annotations

import os


def content_beside(module: str, name: str) -> bytes:
    """The content of a file beside a module.

    Args:
        module: the module's ``__file__``.
        name: the file's path from there, with "/" between folders.

    Raises:
        OSError: there is no such file.
    """
    place = os.path.join(os.path.dirname(module), *name.split("/"))
    content: bytes = __loader__.get_data(place)  # type: ignore[name-defined]
    return content


def text_beside(module: str, name: str) -> str:
    """The text of such a file, in UTF-8; lines end in a line feed, however a checkout ends them."""
    return content_beside(module, name).decode().replace("\r\n", "\n")


def section_beside(module: str, name: str, section: str) -> list[str]:
    """The lines between ``[section]`` and the next section of such a text, without those that begin with "#"."""
    found = text_beside(module, name).partition(f"[{section}]\n")[2].partition("\n[")[0]
    return [line for line in found.splitlines() if not line.startswith("#")]
