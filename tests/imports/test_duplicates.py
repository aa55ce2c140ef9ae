"""One job given twice is an error that names both places."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpc_train.errors import LogParseError
from hpc_train.imports.duplicates import refuse_same_files


def written(folder: Path, **contents: str) -> list[Path]:
    paths = [folder / f"{name}.csv" for name in contents]
    for path, text in zip(paths, contents.values(), strict=True):
        path.write_text(text)
    return paths


def test_one_file_named_twice_is_refused(tmp_path: Path) -> None:
    (path,) = written(tmp_path, a="1")
    with pytest.raises(LogParseError, match=r"a\.csv and .*a\.csv are the same file"):
        refuse_same_files([path, path])


def test_two_files_with_the_same_bytes_are_refused(tmp_path: Path) -> None:
    paths = written(tmp_path, a="1", b="2", c="1")
    with pytest.raises(LogParseError, match=r"a\.csv and .*c\.csv are the same file"):
        refuse_same_files(paths)
    refuse_same_files(paths[:2])
