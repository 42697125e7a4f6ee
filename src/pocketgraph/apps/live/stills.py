"""Pictures that a page sends and gets, and those that it saves."""

from __future__ import annotations

import io
import os
import re
import secrets
from time import strftime

import numpy as np

from pocketgraph.datasets import image_loading
from pocketgraph.errors import FormatError, UsageError, option
from pocketgraph.formats.files import write_atomically
from pocketgraph.graph.tensor import Array

MOST_PIXELS = 1 << 24  # of a frame
MOST_STILLS = 100000  # pictures in a folder
FOLDER = re.compile(r'\w[^/\\:*?"<>|]*')  # what every system takes
MOST_BYTES = 200  # of its name


def pixels_of(data: bytes) -> Array:
    """The pixels of a JPEG, PNG or WebP picture, uint8 [height, width, 3].

    Raises:
        FormatError: it is none, is damaged, or has over 2^24 pixels.
    """
    from PIL import Image

    try:
        with Image.open(io.BytesIO(data), formats=["JPEG", "PNG", "WEBP"]) as picture:
            if picture.width * picture.height > MOST_PIXELS:
                raise FormatError(f"the frame has {picture.width} x {picture.height} pixels, more than {MOST_PIXELS:,}")
            return image_loading.decoded_pixels(picture)
    except FormatError:
        raise
    except Exception:  # decoders answer a damaged picture with whatever exception it happens to lead to
        raise FormatError("the frame is damaged") from None


def jpeg(pixels: Array) -> bytes:
    """Pixels as a JPEG."""
    from PIL import Image

    buffer = io.BytesIO()
    Image.fromarray(np.ascontiguousarray(pixels)).save(buffer, "JPEG", quality=85)
    return buffer.getvalue()


def save_still(folder: str, label: str, data: bytes) -> str:
    """Writes a picture into the folder of its label.

    Returns:
        where it is, from ``folder`` on.

    Raises:
        UsageError: no folder was given, or the label is no name of a folder.
        FormatError: the data are no picture.
    """
    if not folder:
        raise UsageError("no folder for pictures was given", hint=f"start with {option('save')}=DIR")
    is_short = len(os.fsencode(label)) <= MOST_BYTES
    if not is_short or not FOLDER.fullmatch(label) or not label.isprintable() or label != label.strip(". "):
        raise UsageError(
            f"'{label[:100]}' is no name for a folder",
            hint='begin with a letter or digit, of any script, and leave out / \\ : * ? " < > |',
        )
    pixels_of(data)
    target = os.path.join(folder, label)
    os.makedirs(target, exist_ok=True)
    name = f"{strftime('%Y%m%d-%H%M%S')}-{secrets.token_hex(3)}.jpg"
    if len(os.listdir(target)) >= MOST_STILLS:
        raise UsageError(f"the folder '{label}' has {MOST_STILLS:,} pictures already")
    write_atomically(os.path.join(target, name), data)
    return os.path.join(label, name)
