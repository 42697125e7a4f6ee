"""What labels become: a folder with one folder a class, a table, or boxes as COCO keeps them."""

from __future__ import annotations

import csv
import io
import json
import os
from collections import Counter
from dataclasses import dataclass
from typing import Any

from PIL import Image

from pocketgraph.apps.labelling.labels_file import AGREED, Judgement, LabelsFile
from pocketgraph.apps.labelling.rater_agreement import same
from pocketgraph.apps.training_data.decisions import Decision, apply_decisions
from pocketgraph.datasets.image_loading import FORMATS
from pocketgraph.errors import FormatError, UsageError, quoted
from pocketgraph.formats.files import write_atomically


@dataclass(frozen=True)
class ResolvedLabels:
    """What all raters together say.

    Attributes:
        judgements: by photo: what was settled, else what all or most say.
        disputed: photos on which there is no majority; of boxes, on which anybody differs.
        skipped: photos that were only skipped.
    """

    judgements: dict[str, Judgement]
    disputed: tuple[str, ...]
    skipped: tuple[str, ...]


def resolve_labels(labels: LabelsFile) -> ResolvedLabels:
    """What all raters of a file together say of each photo."""
    by_rater = [labels.of(name) for name in labels.raters]
    settled = labels.of(AGREED)
    found: dict[str, Judgement] = {}
    disputed, skipped = [], []
    for path in sorted({path for said in (*by_rater, settled) for path in said}):
        said = [one[path] for one in by_rater if path in one and one[path].kind != "skip"]
        if path in settled:
            if settled[path].kind != "skip":
                found[path] = settled[path]
                continue
            said = []
        if not said:
            skipped.append(path)
        elif same(said):
            found[path] = said[0]
        else:
            (first, most), *others = Counter(one.label for one in said).most_common()
            if labels.has_boxes or (others and others[0][1] == most):
                disputed.append(path)
            else:
                found[path] = next(one for one in said if one.label == first)
    return ResolvedLabels(found, tuple(disputed), tuple(skipped))


def export_command(labels: str, photos: str, *, has_boxes: bool) -> str:
    """What to type when photos are labelled; a folder with one folder a class, or the boxes of all."""
    folder = os.path.normpath(photos)
    new = f"{folder}.boxes.json" if has_boxes else f"{folder}.labelled"
    return f"pocketgraph dataset export {quoted(labels)} {quoted(photos)} -o {quoted(new)}"


def as_folders(settled: ResolvedLabels, photos: list[str], folder: str, new: str) -> int:
    """Copies the labelled photos into a new folder, one folder a class. Gives how many.

    Args:
        settled: labels of whole photos.
        photos: all of ``folder``; those without a label are left out.
        folder: only read.
        new: made whole or not at all.

    Raises:
        UsageError: these are boxes, or the new folder is there.
        FormatError: a photo is not there any more.
    """
    if any(one.kind == "boxes" for one in settled.judgements.values()):
        raise UsageError("boxes are no folders", hint="write .json (COCO) or .csv")
    decisions = [Decision(path, "relabel", one.label) for path, one in settled.judgements.items()]
    decisions += [Decision(path, "drop") for path in photos if path not in settled.judgements]
    return apply_decisions(decisions, folder, new)["relabel"]


def as_csv(settled: ResolvedLabels, labels: LabelsFile, path: str) -> int:
    """Writes a table: path, label, what each rater said; of boxes path, label and their sides. Gives how many rows."""
    said = {name: labels.of(name) for name in labels.raters}
    rows: list[list[Any]] = []
    if labels.has_boxes:
        rows.append(["path", "label", "x", "y", "width", "height"])
        for photo, one in settled.judgements.items():
            rows += [[photo, box.label, box.x, box.y, box.width, box.height] for box in one.boxes]
    else:
        rows.append(["path", "label", *said])
        for photo, one in settled.judgements.items():
            rows.append([photo, one.label, *(said[name][photo].label if photo in said[name] else "" for name in said)])
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    write_atomically(path, text.getvalue().encode("utf-8", "surrogateescape"))
    return len(rows) - 1


def as_coco(settled: ResolvedLabels, labels: LabelsFile, folder: str, path: str) -> int:
    """Writes boxes as a JSON file of COCO's object detection: images, annotations, categories. Gives how many boxes.

    The format: https://cocodataset.org/#format-data; ``bbox`` is x, y, width, height in pixels of the file.

    Raises:
        UsageError: these are classes of whole photos.
        FormatError: a photo does not open any more.
    """
    if not labels.has_boxes:
        raise UsageError("these labels have no boxes", hint="write .csv, or a folder")
    category = {name: number for number, name in enumerate(labels.classes, 1)}
    images: list[dict[str, Any]] = []
    annotations: list[dict[str, Any]] = []
    for number, (photo, one) in enumerate(settled.judgements.items(), 1):
        width, height = size_of(os.path.join(folder, *photo.split("/")))
        images.append({"id": number, "file_name": photo, "width": width, "height": height})
        annotations += [
            {
                "id": len(annotations) + at,
                "image_id": number,
                "category_id": category[box.label],
                "bbox": [box.x, box.y, box.width, box.height],
                "area": box.width * box.height,
                "iscrowd": 0,
            }
            for at, box in enumerate(one.boxes, 1)
        ]
    made = {
        "info": {"description": f"Boxes of {os.path.basename(os.path.abspath(folder))}"},
        "images": images,
        "annotations": annotations,
        "categories": [{"id": number, "name": name} for name, number in category.items()],
    }
    write_atomically(path, json.dumps(made, indent=1).encode())
    return len(annotations)


def size_of(path: str) -> tuple[int, int]:
    """Width and height of a photo as its file has it, not turned.

    Raises:
        FormatError: it does not open.
    """
    try:
        with Image.open(path, formats=FORMATS) as picture:
            return picture.width, picture.height
    except Exception:  # decoders answer a damaged file with whatever exception it happens to lead to
        raise FormatError("the photo does not open", where=path) from None
