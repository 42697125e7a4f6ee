"""Asks `check` and then exports, for every model of a catalogue, and prints where the two do not say the same.

    python tools/check_and_export.py MODELS [--targets tflite:float16,onnx,c,…] [--only NAME,…]

MODELS holds a folder a model with ``model.json`` that names its file. A target may have a mode behind a colon. Leaves
with 1 where an answer differs.
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import sys
import tempfile
from typing import Any

from pocketgraph.errors import PocketgraphError
from pocketgraph.exporting import TARGETS, export
from pocketgraph.exporting.programs import LackingError
from pocketgraph.exporting.target_support import support

BROKEN = "BROKEN"
"""What stands before an error that is none of pocketgraph's own."""
EVERYTHING = "tflite,tflite:float16,tflite:dynamic,tflite:static,onnx,c,coreml"


def checked(path: pathlib.Path, target: str, options: dict[str, str]) -> tuple[set[str], str]:
    """What check says against a model: nodes, and a reason for it as a whole."""
    try:
        found = support(os.fspath(path), target, **options)
    except Exception as error:
        return set(), _said(error)
    return set(found.reasons), found.refusal


def exported(path: pathlib.Path, target: str, options: dict[str, Any]) -> tuple[set[str], str]:
    """What export says against it."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            export(os.fspath(path), os.path.join(folder, "".join(("x", *TARGETS[target].suffixes[:1]))),
                   target=target, **options)  # fmt: skip
        except LackingError as error:
            return set(error.reasons), ""
        except Exception as error:
            return set(), _said(error)
    return set(), ""


def _said(error: Exception) -> str:
    return str(error) if isinstance(error, PocketgraphError) else f"{BROKEN} {type(error).__name__}: {error}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", type=pathlib.Path)
    parser.add_argument("--targets", default=EVERYTHING)
    parser.add_argument("--only", default="")
    given = parser.parse_args()
    only = [name for name in given.only.split(",") if name]
    pairs = taken = apart = 0
    for place in sorted(given.models.glob("*/model.json")):
        path = place.parent / str(json.loads(place.read_text()).get("file", "-"))
        if not path.is_file() or (only and place.parent.name not in only):
            continue
        for name in given.targets.split(","):
            target, _, mode = name.partition(":")
            options = {"mode": mode} if mode else {}
            said, done = checked(path, target, options), exported(path, target, options)
            pairs += 1
            taken += not any(done)
            if any(said) != any(done) or said[0] != done[0] or BROKEN in said[1]:
                apart += 1
                print(f"{place.parent.name} {name}: check says {said}, export {done}", flush=True)
    print(f"{pairs} pairs, {taken} of them exported, {apart} answers differ")
    return int(apart > 0)


if __name__ == "__main__":
    sys.exit(main())
