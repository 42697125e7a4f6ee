"""Kotlin on Android, with LiteRT."""

from __future__ import annotations

import json
import os

from pocketgraph.apps.projects.app_names import in_android, in_kotlin
from pocketgraph.apps.projects.litert_facts import facts
from pocketgraph.apps.projects.project import PictureFacts, Project, about, front
from pocketgraph.apps.projects.project_files import project_files
from pocketgraph.formats.files import write_files

JAVA = "app/src/main/java/@package_path@/"
CAMERA_X = "1.4.2"
CAMERA_PARTS = ("camera-camera2", "camera-lifecycle", "camera-view")
CAMERA_ROW = "| `…/CameraActivity.kt` | what the camera sees, and what the model says of it |\n"
PERMISSION = """    <uses-feature android:name="android.hardware.camera" android:required="false" />
    <uses-feature android:name="android.hardware.camera.autofocus" android:required="false" />
    <uses-permission android:name="android.permission.CAMERA" />
"""
ACTIVITY = """        <activity android:name=".{name}" android:exported="{exported}"{more}"""
LAUNCHER = """>
            <intent-filter>
                <action android:name="android.intent.action.MAIN" />
                <category android:name="android.intent.category.LAUNCHER" />
            </intent-filter>
        </activity>
"""


def write(project: Project, folder: str) -> None:
    """Writes the project."""
    path = os.path.join(folder, "app", "src", "main", "assets", "model.tflite")
    project.place_model(path)
    words = _words(project, path)
    leave = frozenset() if project.has_camera else frozenset({f"{JAVA}CameraActivity.kt"})
    made = project_files("android", words, leave)
    if project.labels:
        made["app/src/main/assets/labels.txt"] = project.label_lines().encode()
    for name, content in project.golden_files().items():
        made[f"app/src/androidTest/assets/golden/{name}"] = content
    write_files(folder, made)


def _words(project: Project, path: str) -> dict[str, str]:
    known = facts(project, path)
    picture = project.picture or PictureFacts(0, 0, 3, (0.0,) * 3, (1.0,) * 3)
    has_camera = project.has_camera
    shapes = (f"intArrayOf({', '.join(map(str, port.sizes or ()))})" for port in project.inputs)
    return {
        "title": project.name.title, "android_title": in_android(project.name.title), "word": project.name.word,
        "package": project.name.package, "package_path": project.name.package.replace(".", "/"),
        "camera_dependencies": "".join(
            f'    implementation("androidx.camera:{part}:{CAMERA_X}")\n' for part in CAMERA_PARTS if has_camera
        ),
        "camera_permission": PERMISSION if has_camera else "", "camera_row": CAMERA_ROW if has_camera else "",
        "activities": _activities(has_camera), "about": about(project), "front": front(project),
        "width": str(picture.width), "height": str(picture.height), "channels": str(picture.channels),
        "gives_scores": "true" if project.gives_scores else "false", "tolerance": f"{project.tolerance:g}f",
        "by_mean": "true" if project.by_mean else "false",
        "mean": _floats(picture.mean), "std": _floats(picture.std),
        "inputs": ", ".join(in_kotlin(port.name) for port in project.inputs),
        "outputs": ", ".join(in_kotlin(port.name) for port in project.outputs),
        "input_shapes": ", ".join(shapes), "input_places": ", ".join(map(str, known["input_places"])),
        "output_places": ", ".join(map(str, known["output_places"])), "graph_names": _graph_names(project),
    }  # fmt: skip


def _graph_names(project: Project) -> str:
    """Pairs of names, as arrays of Java, of what a signature calls otherwise than the graph."""
    pairs = ((port.tensor.removesuffix(":0"), port.name) for port in (*project.inputs, *project.outputs))
    return ", ".join(f"{{{json.dumps(name)}, {json.dumps(public)}}}" for name, public in pairs if name != public)


def _activities(has_camera: bool) -> str:
    """The activities of the manifest, the first one being what the launcher starts."""
    names = ["CameraActivity", "BenchmarkActivity"] if has_camera else ["BenchmarkActivity"]
    parts = [ACTIVITY.format(name=names[0], exported="true", more=LAUNCHER)]
    parts += [ACTIVITY.format(name=name, exported="false", more=" />\n") for name in names[1:]]
    return "".join(parts).rstrip("\n")


def _floats(numbers: tuple[float, ...]) -> str:
    return ", ".join(f"{number!r}f" for number in numbers)
