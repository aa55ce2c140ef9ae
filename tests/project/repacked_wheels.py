"""Wheels of installed distributions: what an index has, without a network."""

from __future__ import annotations

import re
import zipfile
from importlib.metadata import Distribution
from pathlib import Path


def repack(one: Distribution, folder: Path) -> Path:
    """Write the wheel that an installed distribution came from, without its programs."""
    tag = re.search(r"^Tag: (\S+)$", one.read_text("WHEEL") or "", re.MULTILINE)
    assert tag, one.name
    name = re.sub(r"[-_.]+", "_", one.name)
    wheel = folder / f"{name}-{one.version}-{tag[1]}.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        for file in one.files or ():
            if ".." not in file.parts and file.suffix != ".pyc":
                archive.write(Path(str(one.locate_file(file))), file.as_posix())
    return wheel
