"""Photos in a page: small, and inside it."""

from __future__ import annotations

import base64
import io

import numpy as np

from pocketgraph.datasets import image_loading
from pocketgraph.errors import FormatError
from pocketgraph.graph.tensor import Array
from pocketgraph.pages.document import text

THUMBNAIL = 144  # pixels


def thumbnail(path: str, said: str = "") -> str:
    """The photo in a file as HTML; nothing where it does not open.

    Args:
        path: of the file.
        said: in its place, for who does not see it; by default the path.
    """
    try:
        return picture_in_page(image_loading.read(path), THUMBNAIL, said or path)
    except FormatError:
        return ""


def picture_in_page(pixels: Array, side: int, said: str) -> str:
    """Pixels as HTML.

    Args:
        pixels: uint8 [height, width, channels].
        side: the most pixels that a side has in the page.
        said: in its place, for who does not see it.
    """
    from PIL import Image

    picture = Image.fromarray(np.ascontiguousarray(pixels))
    picture.thumbnail((side, side))
    content = io.BytesIO()
    picture.save(content, "JPEG", quality=70)
    data = base64.b64encode(content.getvalue()).decode()
    return f'<img alt="{text(said)}" src="data:image/jpeg;base64,{data}">'


def figure(pictures: str, *lines: str) -> str:
    """Pictures over lines of HTML."""
    caption = f"<figcaption>{'<br>'.join(lines)}</figcaption>"
    return f'<figure style="width:19rem;overflow-wrap:anywhere">{pictures}{caption}</figure>\n'
