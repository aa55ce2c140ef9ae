"""Names of programs, versions and the properties of torch -> Software."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import msgspec

from hpc_train.model.hardware import Software, Torch
from hpc_train.probe.probe_script import Section
from hpc_train.probe.run_program import whole

_EMPTY = Section(text="", returncode=1)
_OPEN_MPI = re.compile(r"\(Open MPI\) (\d+(?:\.\d+)*)")
_NAME = re.compile(r"[a-z][a-z0-9-]*")


def software(found: Mapping[str, Section]) -> Software:
    """Read the sections of the probe script on software."""
    programs = found.get("programs", _EMPTY).text.split()
    version = _OPEN_MPI.search(found.get("mpirun", _EMPTY).text)
    return Software(
        programs=tuple(name for name in programs if _NAME.fullmatch(name)),
        modules=_modules(setting(found, "modules")),
        pyxis=_count(found.get("pyxis", _EMPTY)) > 0,
        mpirun=version[1] if version else "",
        mpirun_knows_slurm=_knows_slurm(found.get("ompi_info", _EMPTY)),
        torch=torch(found.get("torch", _EMPTY).text),
    )


def setting(found: Mapping[str, Section], name: str) -> str:
    """Return a value of the section `settings`."""
    for line in found.get("settings", _EMPTY).text.splitlines():
        key, _, value = line.partition(" ")
        if key == name:
            return value.strip()
    return ""


def torch(text: str) -> Torch | None:
    """Read the last line of the output on torch; warnings may precede it."""
    lines = text.strip().splitlines()
    try:
        report: Any = msgspec.json.decode(lines[-1].encode() if lines else b"")
        return msgspec.convert(report, Torch)
    except (msgspec.DecodeError, msgspec.ValidationError):
        return None


def _modules(text: str) -> str:
    lmod, _, home = text.partition("|")
    if lmod:
        return f"Lmod {lmod}"
    return f"environment modules in {home}" if home else ""


def _knows_slurm(section: Section) -> bool | None:
    """Read the count of grep, whose exit code is 1 if the count is 0."""
    count = whole(section.text.strip())
    return None if count is None else count > 0


def _count(section: Section) -> int:
    return whole(section.text.strip()) or 0
