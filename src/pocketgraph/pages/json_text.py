"""Reports as JSON."""

from __future__ import annotations

import json
import math
from typing import Any


def finite(value: Any) -> Any:
    """A value of dictionaries and lists with None in place of infinities and NaN, which JSON has no word for; tuples
    are lists."""
    if isinstance(value, dict):
        return {key: finite(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def json_text(content: Any, *, indent: int = 2, ensure_ascii: bool = True) -> str:
    """A report for programs, its numbers that are not finite as null."""
    return json.dumps(finite(content), indent=indent, ensure_ascii=ensure_ascii)
