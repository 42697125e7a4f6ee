"""Puts the version of the code that is built into a wheel (see src/pocketgraph/litert/code_version.py)."""

from __future__ import annotations

import importlib.util
import os
import pathlib
import tempfile
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

PLACE = "pocketgraph/litert/code_version"


class CodeVersion(BuildHookInterface):  # type: ignore[type-arg]
    """Writes the version beside the module that reads it; an editable install goes by its checkout."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version == "editable":
            return
        source = pathlib.Path(self.root, "src", f"{PLACE}.py")
        spec = importlib.util.spec_from_file_location("code_version", source)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        handle, self.written = tempfile.mkstemp(suffix=".txt")
        with os.fdopen(handle, "w") as file:
            file.write(module.content_version(os.path.join(self.root, "src", "pocketgraph")))
        os.chmod(self.written, 0o644)
        build_data["force_include"][self.written] = f"{PLACE}.txt"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        if version != "editable":
            os.unlink(self.written)
