"""Python on a Raspberry Pi."""

from __future__ import annotations

import os

from pocketgraph.apps.projects.app_names import in_unit
from pocketgraph.apps.projects.litert_facts import as_json, facts, golden_arrays
from pocketgraph.apps.projects.project import Project, about, front
from pocketgraph.apps.projects.project_files import project_files
from pocketgraph.formats.files import write_files

SOUND_ROW = "| `sound.py` | what the model takes of a recording; `main.py --recording=FILE.wav` |\n"
FIRST_TRY = """
Without a camera, `main.py --picture=photo.jpg` says what a picture shows.
"""


def write(project: Project, folder: str) -> None:
    """Writes the project."""
    path = os.path.join(folder, "model.tflite")
    project.place_model(path)
    program = "main.py" if project.has_camera else "main.py --benchmark=20"
    leave = frozenset() if project.sound is not None else frozenset({"sound.py.txt"})
    words = {
        "title": project.name.title, "unit_title": in_unit(project.name.title), "small": project.name.small,
        "program": program, "about": about(project), "front": front(project),
        "first_try": FIRST_TRY if project.has_camera else "",
        "sound_row": SOUND_ROW if project.sound is not None else "",
    }  # fmt: skip
    made = project_files("pi", words, leave)
    made["model.json"] = as_json(facts(project, path))
    made["golden.npz"] = golden_arrays(project)
    if project.labels:
        made["labels.txt"] = project.label_lines().encode()
    write_files(folder, made)
