"""What compiled parts depend on besides what they were made from: the LiteRT that is installed, and the kind of CPU."""

from __future__ import annotations

import contextlib
import os
import sys
from functools import lru_cache

from pocketgraph.litert.code_version import short_digest


@lru_cache(maxsize=1)
def engine_version() -> str:
    """The version of the installed LiteRT package."""
    place = engine_folder()
    if place:
        # importlib.metadata tells it too, but takes as long as the rest of a warm start.
        with contextlib.suppress(OSError):
            for beside_it in os.listdir(os.path.dirname(place)):
                if beside_it.startswith("ai_edge_litert-") and beside_it.endswith(".dist-info"):
                    return beside_it.removeprefix("ai_edge_litert-").removesuffix(".dist-info")
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("ai-edge-litert")
    except PackageNotFoundError:
        return "unknown"


@lru_cache(maxsize=1)
def engine_folder() -> str:
    """The folder of the installed LiteRT package, which need not be imported for it; "" where there is none."""
    from importlib.machinery import PathFinder

    spec = PathFinder.find_spec("ai_edge_litert")
    if spec is None:  # somebody has another way to find it
        from importlib.util import find_spec

        spec = find_spec("ai_edge_litert")
    return next(iter((spec.submodule_search_locations if spec is not None else None) or ("",)))


def is_utf8(path: str) -> bool:
    """Whether a path is UTF-8 as the system is given it, and so one that LiteRT's package opens: it is not where the
    locale has another encoding."""
    return path.encode(errors="replace") == os.fsencode(path)


@lru_cache(maxsize=1)
def is_x86() -> bool:
    """Whether the processor is one of Intel's or AMD's."""
    import platform

    return platform.machine().lower() in ("x86_64", "amd64")


AES, SHA2, CRC32, ATOMICS, FPHP, ASIMDHP, ASIMDRDM, LRCPC, ASIMDDP = 3, 6, 7, 8, 9, 10, 12, 15, 20
"""Bits of AT_HWCAP on arm64 (Linux, asm/hwcap.h): what LiteRT's library for GPUs says it was compiled with."""
GPU_LIBRARY_NEEDS = sum(1 << bit for bit in (AES, SHA2, CRC32, ATOMICS, FPHP, ASIMDHP, ASIMDRDM, LRCPC, ASIMDDP))


def runs_gpu_library() -> bool:
    """Whether the processor can run LiteRT's library for GPUs, which ends the process where it cannot: on arm64, it
    takes what the Cortex-A53 and A72 of a Raspberry Pi 3 and 4 lack.

    LiteRT's Python package loads it for each model that it compiles, also for one that shall run on the CPU; its
    interpreter does not, nor does its C library as c_library.py calls it.
    """
    import platform

    is_arm_linux = sys.platform == "linux" and platform.machine().lower() in ("aarch64", "arm64")
    return not is_arm_linux or _hwcaps() & GPU_LIBRARY_NEEDS == GPU_LIBRARY_NEEDS


@lru_cache(maxsize=1)
def _hwcaps() -> int:
    """What Linux says of the processor's instructions; 0 where the C library does not pass it on."""
    import ctypes

    try:
        getauxval = ctypes.CDLL(None).getauxval
    except (OSError, AttributeError, TypeError):
        return 0
    getauxval.restype, getauxval.argtypes = ctypes.c_ulong, (ctypes.c_ulong,)
    return int(getauxval(AT_HWCAP))


AT_HWCAP = 16  # elf.h


@lru_cache(maxsize=1)
def cpu() -> str:
    """A short name for this kind of CPU: packed weights depend on its instruction set."""
    import platform

    text = platform.machine()
    with contextlib.suppress(OSError):
        with open("/proc/cpuinfo", "rb") as file:
            lines = file.read(8192).split(b"\n\n")[0].splitlines()
        kept = [line for line in lines if line.startswith((b"flags", b"Features", b"model name", b"CPU part"))]
        text += short_digest(b"".join(kept), 4)
    return text.replace("-", "_")
