"""Installed distributions: what a wheel requires, how large it is, and a copy without a network."""

import shutil
import zipfile
from collections.abc import Iterable
from importlib.metadata import Distribution, PathDistribution, distribution
from pathlib import Path, PurePosixPath

from packaging.requirements import Requirement


def of_wheel(wheel: Path) -> Distribution:
    """Return the metadata of a wheel."""
    name, version, *_ = wheel.name.split("-")
    return PathDistribution(zipfile.Path(wheel, f"{name}-{version}.dist-info/"))


def required(of: Distribution) -> list[Distribution]:
    """Return every distribution that one requires, without its extras."""
    found: dict[str, Distribution] = {}
    todo = list(of.requires or ())
    while todo:
        requirement = Requirement(todo.pop())
        wanted = requirement.marker is None or requirement.marker.evaluate({"extra": ""})
        if wanted and requirement.name.lower() not in found:
            one = found[requirement.name.lower()] = distribution(requirement.name)
            todo += one.requires or ()
    return list(found.values())


def copy(distributions: Iterable[Distribution], packages: Path) -> None:
    """Copy the files of distributions, as their RECORD lists them, without programs."""
    for one in distributions:
        for file in one.files or ():
            if ".." not in file.parts and file.suffix != ".pyc":
                target = packages / file
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(Path(str(one.locate_file(file))), target)


def size(distributions: Iterable[Distribution]) -> int:
    """Return the size [B] of the files and of the modules that pip compiles beside them.

    A compiled module is about as large as its source.
    """
    return sum(_bytes(one, file) for one in distributions for file in one.files or ())


def _bytes(of: Distribution, file: PurePosixPath) -> int:
    if ".." in file.parts or file.suffix == ".pyc":
        return 0
    return Path(str(of.locate_file(file))).stat().st_size * (2 if file.suffix == ".py" else 1)
