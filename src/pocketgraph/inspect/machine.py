"""Facts of the machine and of this process that a time means nothing without."""

from __future__ import annotations

import os
import platform
import sys
from typing import Any

from pocketgraph.budgets import usable_processors


def facts() -> dict[str, Any]:
    """The processor, how many of it this process may use, memory, system, and the versions that matter."""
    from importlib.metadata import PackageNotFoundError, version

    versions = {"python": platform.python_version()}
    for package in ("pocketgraph", "numpy", "ai-edge-litert"):
        try:
            versions[package] = version(package)
        except PackageNotFoundError:
            continue
    return {
        "processor": _processor(),
        "architecture": platform.machine(),
        "processors": os.cpu_count() or 1,
        "usable_processors": usable_processors(),
        "memory_bytes": _memory(),
        "system": f"{platform.system()} {platform.release()}",
        "versions": versions,
    }


def peak_memory() -> int | None:
    """The most bytes of memory that this process has had in use (resident) so far; None where nobody tells."""
    try:
        import resource
    except ImportError:  # not on Windows
        return None
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return int(most if sys.platform == "darwin" else most * 1024)


def _processor() -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
            for line in file:
                name, _, value = line.partition(":")
                if name.strip() in ("model name", "Model", "Hardware"):
                    return value.strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def _memory() -> int | None:
    try:
        return int(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    except (AttributeError, OSError, ValueError):
        return None
