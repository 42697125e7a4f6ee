"""What the build adds: the version of a wheel's code (litert/code_version.py), guides, a page with whole links."""

from __future__ import annotations

import importlib.util
import os
import pathlib
import re
import tempfile
from types import ModuleType
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from hatchling.metadata.plugin.interface import MetadataHookInterface

PLACE = "pocketgraph/litert/code_version"
GUIDES = "pocketgraph/cli/guides.json.gz"


def module(root: str, place: str) -> ModuleType:
    """A module of the package that imports the standard library alone, without the package."""
    spec = importlib.util.spec_from_file_location(
        pathlib.PurePath(place).name, pathlib.Path(root, "src", f"{place}.py")
    )
    assert spec is not None
    assert spec.loader is not None
    found = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(found)
    return found


class WheelFiles(BuildHookInterface):  # type: ignore[type-arg]
    """Puts the version and the guides beside the modules that read them; an editable install goes by its checkout."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version == "editable":
            return
        code = module(self.root, PLACE).content_version(os.path.join(self.root, "src", "pocketgraph"))
        guides = module(self.root, "pocketgraph/cli/shared/guides").packed(pathlib.Path(self.root, "docs"))
        self.written: list[str] = []
        self.add(code.encode(), f"{PLACE}.txt", build_data)
        self.add(guides, GUIDES, build_data)

    def add(self, content: bytes, place: str, build_data: dict[str, Any]) -> None:
        """Puts a file into the wheel."""
        handle, written = tempfile.mkstemp()
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        os.chmod(written, 0o644)
        self.written.append(written)
        build_data["force_include"][written] = place

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        if version != "editable":
            for written in self.written:
                os.unlink(written)


class LongDescription(MetadataHookInterface):
    """README.md as the package index shows it: links and pictures lead to the repository, at the tag of the version."""

    def update(self, metadata: dict[str, Any]) -> None:
        text = pathlib.Path(self.root, "README.md").read_text(encoding="utf-8")
        place, tag = metadata["urls"]["Repository"], f"v{metadata['version']}"

        def whole(match: re.Match[str]) -> str:
            is_picture, link = match[1].startswith("!"), match[2]
            return f"{match[1]}({place}/{'raw' if is_picture else 'blob'}/{tag}/{link})"

        text = re.sub(r"(!?\[[^]]*\])\((?!https?:|mailto:|#)([^)\s]+)\)", whole, text)
        metadata["readme"] = {"content-type": "text/markdown", "text": text}
