"""Swift on iOS, with Core ML or LiteRT."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from pocketgraph.apps.projects.app_names import in_plist, in_swift
from pocketgraph.apps.projects.litert_facts import facts
from pocketgraph.apps.projects.project import PictureFacts, Project, about, front, little_endian
from pocketgraph.apps.projects.project_files import project_files
from pocketgraph.errors import UsageError
from pocketgraph.exporting.coreml.coreml_exporter import BESIDE
from pocketgraph.exporting.coreml.names import feature_names
from pocketgraph.exporting.model import Port
from pocketgraph.formats.files import write_files
from pocketgraph.graph.model_file_graph import numbers

IOS = 17
CAMERA = "The camera's pictures go to the model on this device, and nowhere else."
TRIED = {
    "coreml": "The package was read back where this project was made, and each of its operators computed by its "
    "definition, which gave what it must; Core ML itself runs on Apple's systems alone.",
    "tflite": "The model ran in LiteRT where this project was made, and gave what it must.",
}
CAMERA_TAB = """            CameraView()
                .tabItem { Label("Camera", systemImage: "camera") }
"""
CAMERA_ROWS = "| `App/CameraView.swift`, `App/CameraModel.swift` | what the camera sees and the model says |\n"
PLACES = """
    /// Which of the file's inputs and outputs these are.
    static let inputPlaces = {input_places}
    static let outputPlaces = {output_places}
"""
LITERT_ONLY = frozenset({"App/LiteRTEngine.swift", "Podfile"})
CAMERA_ONLY = frozenset({"App/CameraView.swift", "App/CameraModel.swift"})


def write(project: Project, folder: str) -> None:
    """Writes the project."""
    is_litert = project.engine == "tflite"
    coded = [port.name for port in (*project.inputs, *project.outputs) if port.dtype.name == "int8"]
    if is_litert and coded:
        raise UsageError(
            f"LiteRT's classes for Swift have no int8, which '{coded[0]}' is",
            hint="quantize with floats going in and out, or build on Core ML",
        )
    network = "Network.tflite" if is_litert else "Network.mlpackage"
    path = os.path.join(folder, "App", network)
    if is_litert:
        project.place_model(path)
    else:
        project.place_model(path, labelled=False, image=False)
        for ending in BESIDE:  # the project has a test of its own
            os.unlink(path + ending)
    known = facts(project, path) if is_litert else {}
    leave = frozenset({"App/CoreMLEngine.swift"}) if is_litert else LITERT_ONLY
    leave |= frozenset() if project.has_camera else CAMERA_ONLY
    made = project_files("ios", _words(project, network, known), leave)
    if project.labels:
        made["App/labels.txt"] = project.label_lines().encode()
    for kind, place, port, array in project.golden_arrays():
        values = numbers(project.model.graph, port.tensor, array) if project.source else array
        made[f"Tests/{kind}_{place}.bin"] = little_endian(np.asarray(values, np.float32))
    write_files(folder, made)


def _words(project: Project, network: str, known: dict[str, Any]) -> dict[str, str]:
    name, is_litert = project.name, project.engine == "tflite"
    picture = project.picture or PictureFacts(0, 0, 3, (0.0,) * 3, (1.0,) * 3)
    ports = (*project.inputs, *project.outputs)
    names = [port.name for port in ports] if is_litert else feature_names(ports)
    count = len(project.inputs)
    place = f"{name.word}.xcworkspace" if is_litert else f"{name.word}.xcodeproj"
    return {
        "title": name.title, "swift_title": in_swift(name.title), "word": name.word, "network": network,
        "engine": "LiteRT" if is_litert else "Core ML",
        "engine_file": "LiteRTEngine.swift" if is_litert else "CoreMLEngine.swift",
        "first_command": "pod install && open " + place if is_litert else f"open {place}",
        "project_flag": ("workspace " if is_litert else "project ") + place,
        "project_kind": "workspace" if is_litert else "project", "about": about(project), "front": front(project),
        "tried": TRIED[project.engine], "ios": str(IOS), "camera_tab": CAMERA_TAB if project.has_camera else "",
        "camera_rows": CAMERA_ROWS if project.has_camera else "",
        "gives_scores": _truth(project.gives_scores), "takes_pictures": _truth(project.picture is not None),
        "width": str(picture.width), "height": str(picture.height), "channels": str(picture.channels),
        "mean": _floats(picture.mean), "std": _floats(picture.std), "tolerance": f"{project.tolerance:g}",
        "by_mean": "true" if project.by_mean else "false",
        "inputs": _ports(project.inputs, names[:count]), "outputs": _ports(project.outputs, names[count:]),
        "places": PLACES.format(**known) if is_litert else "",
        "app_settings": _settings({
            "CODE_SIGN_STYLE": "Automatic", "COREML_CODEGEN_LANGUAGE": "None", "CURRENT_PROJECT_VERSION": "1",
            "GENERATE_INFOPLIST_FILE": "YES",
            "INFOPLIST_KEY_CFBundleDisplayName": name.title.replace("$", ""),
            **({"INFOPLIST_KEY_NSCameraUsageDescription": CAMERA} if project.has_camera else {}),
            "INFOPLIST_KEY_UIApplicationSceneManifest_Generation": "YES",
            "INFOPLIST_KEY_UILaunchScreen_Generation": "YES",
            "INFOPLIST_KEY_UISupportedInterfaceOrientations": "UIInterfaceOrientationPortrait",
            "LD_RUNPATH_SEARCH_PATHS": "$(inherited) @executable_path/Frameworks", "MARKETING_VERSION": "1.0",
            "PRODUCT_BUNDLE_IDENTIFIER": name.bundle, "PRODUCT_NAME": "$(TARGET_NAME)", "TARGETED_DEVICE_FAMILY": "1",
        }),
        "test_settings": _settings({
            "BUNDLE_LOADER": "$(TEST_HOST)", "CODE_SIGN_STYLE": "Automatic", "GENERATE_INFOPLIST_FILE": "YES",
            "PRODUCT_BUNDLE_IDENTIFIER": f"{name.bundle}.tests", "PRODUCT_NAME": "$(TARGET_NAME)",
            "TEST_HOST": f"$(BUILT_PRODUCTS_DIR)/{name.word}.app/$(BUNDLE_EXECUTABLE_FOLDER_PATH)/{name.word}",
        }),
    }  # fmt: skip


def _settings(values: dict[str, str]) -> str:
    """Build settings of an Xcode project."""
    return "".join(f"\n\t\t\t\t{key} = {in_plist(value)};" for key, value in values.items())


def _ports(ports: Sequence[Port], names: Sequence[str]) -> str:
    return "".join(
        f"        Port(name: {in_swift(name)}, shape: [{', '.join(map(str, port.sizes or ()))}]),\n"
        for port, name in zip(ports, names, strict=True)
    )


def _truth(value: bool) -> str:
    return "true" if value else "false"


def _floats(values: Sequence[float]) -> str:
    return ", ".join(map(repr, values))
