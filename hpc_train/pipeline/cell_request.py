"""The cell of a notebook -> a request, with its text in a file below the folder of results."""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import msgspec

from hpc_train.json_files import write_file
from hpc_train.model.run import RunFolder
from hpc_train.pipeline.keyword_request import keyword_request
from hpc_train.pipeline.render import Request, request_of
from hpc_train.runs.run_folders import run_folders
from hpc_train.secret_leaks import check_program

# In the folder of all results: the files that run, by the digest of their text.
CELLS = ".cells"
CELL = "cell.py"


class CellOptions(NamedTuple):
    """The first line of a cell: keys of the job and `--set` as texts, the script's arguments."""

    site: str | None
    keys: Mapping[str, str]
    settings: Sequence[str]
    arguments: Sequence[str]


def cell_request(text: str, root: Path, options: CellOptions) -> Request:
    """Store the text of a cell, and return the request to run it as a script.

    It runs with the interpreter of the notebook, and imports from its folder, as the cell would.

    Raises:
        SpecError: the text contains a secret, is not a Python program, or an option is wrong.
        StoreError: the file cannot be written.
    """
    check_program(text, "cell")
    file = root / CELLS / f"{hashlib.sha256(text.encode()).hexdigest()[:12]}.py"
    given = request_of(file, options.arguments, options.site, options.keys, options.settings)
    file.parent.mkdir(parents=True, exist_ok=True)
    write_file(file, text.encode())
    shown = file if any(one.key == "workdir" for one in given.overrides) else _relative(file)
    folders = [str(Path.cwd()), *filter(None, [os.environ.get("PYTHONPATH")])]
    own = keyword_request(
        file,
        (),
        None,
        {"name": "cell", "command": [sys.executable, str(shown), *options.arguments]},
        {"env.PYTHONPATH": os.pathsep.join(folders)},
    )
    return msgspec.structs.replace(given, overrides=(*own.overrides, *given.overrides))


def _relative(file: Path) -> Path:
    """Return a path below the current folder, where the job starts, without that folder."""
    return file.relative_to(Path.cwd()) if file.is_relative_to(Path.cwd()) else file


def store_cell(run: Path, text: str) -> None:
    """Write the text of a cell into the folder of its run.

    Raises:
        StoreError: the file cannot be written.
    """
    write_file(RunFolder(path=run).path / CELL, text.encode())


def remove_unused(request: Request, root: Path) -> None:
    """Remove the stored text of a cell that was not submitted, unless another run uses it."""
    if any(_uses(run, request.path) for home in root.glob("*") for run in run_folders(home)):
        return
    with suppress(OSError):
        request.path.unlink()
        request.path.parent.rmdir()
        root.rmdir()


def _uses(run: RunFolder, file: Path) -> bool:
    try:
        return file.name.encode() in run.manifest.read_bytes()
    except OSError:
        return False
