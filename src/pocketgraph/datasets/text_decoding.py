"""What lists and tables say that people wrote: UTF-8, or UTF-16 where they begin as that does."""

from __future__ import annotations

import codecs

from pocketgraph.errors import FormatError

UTF_16_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
"""What UTF-16 begins with: PowerShell's ``>`` and Excel's Unicode text write it."""


def decoded(data: bytes, what: str, place: str) -> str:
    """The text of a file, without the mark in front of it; ends of lines stay as they are.

    Args:
        data: the file.
        what: it should be, for the message, as in ``this is no table``.
        place: the file's path, for the message.

    Raises:
        FormatError: it is in another encoding, or no text.
    """
    try:
        return data.decode("utf-16" if data.startswith(UTF_16_MARKS) else "utf-8-sig")
    except UnicodeDecodeError as error:
        raise FormatError(
            f"this is no {what} in UTF-8 ({error.reason} at byte {error.start:,})",
            where=place,
            hint="save it in UTF-8: Excel calls that CSV UTF-8; iconv -f cp1252 -t utf-8 makes it of a file of Windows",
        ) from None
