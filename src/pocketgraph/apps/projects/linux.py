"""C on Linux, on the C exporter's library."""

from __future__ import annotations

import os

from pocketgraph.apps.projects.project import PictureFacts, Project, about, front
from pocketgraph.apps.projects.project_files import project_files
from pocketgraph.exporting.c.unit import number
from pocketgraph.exporting.c_identifiers import literal
from pocketgraph.formats.files import write_files

PICTURES = """
## Pictures and cameras

The program takes binary .{form} files, and a stream of them:

    ffmpeg -loglevel error -i photo.jpg -f image2pipe -c:v {form} - | bin/{small} -
    ffmpeg -loglevel error -f v4l2 -i /dev/video0 -r 5 -f image2pipe -c:v {form} - | bin/{small} -
"""


def write(project: Project, folder: str) -> None:
    """Writes the project."""
    project.place_model(os.path.join(folder, "model"))
    picture = project.picture or PictureFacts(0, 0, 3, (0.0,), (1.0,))
    small = project.name.small
    golden = " ".join(f"model/golden/input_{place}.bin" for place in range(len(project.inputs)))
    form = "pgm" if picture.channels == 1 else "ppm"
    is_picture = project.picture is not None
    words = {
        "title": project.name.title, "small": small, "golden_inputs": golden, "about": about(project),
        "program": f"bin/{small} photo.{form}" if is_picture else f"bin/{small} -n 20 {golden}",
        "pictures": PICTURES.format(form=form, small=small) if is_picture else "", "front": front(project),
        "takes_pictures": str(int(is_picture)), "gives_scores": str(int(project.gives_scores)),
        "channels": str(picture.channels),
        "mean": ", ".join(map(number, picture.mean)), "deviation": ", ".join(map(number, picture.std)),
        "labels": "".join(f"    {literal(label)},\n" for label in project.labels),
    }  # fmt: skip
    write_files(folder, project_files("linux", words))
