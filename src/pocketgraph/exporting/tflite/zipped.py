"""Files kept behind a model in its own file: a ZIP archive whose offsets are those of the whole file.

The task libraries map labels from there, so that nothing is compressed. Source: PKWARE's APPNOTE.TXT, 4.3.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Mapping

UTF8 = 1 << 11  # flag: names are UTF-8
VERSION = 20  # of the specification, 2.0
DAY = (1 << 5) | 1  # 1980-01-01, so that equal models are equal files


def archive(files: Mapping[str, bytes], start: int) -> bytes:
    """A stored ZIP archive.

    Args:
        files: the content by name.
        start: where in the whole file it begins.
    """
    body, directory = bytearray(), bytearray()
    for name, data in files.items():
        encoded = name.encode()
        common = struct.pack(
            "<HHHHHIIIHH", VERSION, UTF8, 0, 0, DAY, zlib.crc32(data), len(data), len(data), len(encoded), 0
        )
        directory += b"PK\1\2" + struct.pack("<H", VERSION) + common
        directory += struct.pack("<HHHII", 0, 0, 0, 0, start + len(body)) + encoded
        body += b"PK\3\4" + common + encoded + data
    end = struct.pack("<HHHHIIH", 0, 0, len(files), len(files), len(directory), start + len(body), 0)
    return bytes(body + directory + b"PK\5\6" + end)
