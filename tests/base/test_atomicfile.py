"""A file has its old content or its new one, and nothing is left beside it."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from hpc_train.base.files import write_atomic


def others(path: Path) -> list[str]:
    return sorted(entry.name for entry in path.parent.iterdir() if entry != path)


def test_a_writer_that_fails_leaves_the_old_one(tmp_path: Path) -> None:
    path = tmp_path / "f"
    write_atomic(path, b"old")
    with pytest.raises(ZeroDivisionError):
        write_atomic(path, (b"%d" % (1 // number) for number in (1, 0)))
    assert (path.read_bytes(), others(path)) == (b"old", [])


def test_the_umask_decides_who_may_read(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        write_atomic(tmp_path / "f", b"")
    finally:
        os.umask(before)
    assert (tmp_path / "f").stat().st_mode & 0o777 == 0o640


def test_a_name_of_any_length_and_any_bytes(tmp_path: Path) -> None:
    for name in ("x" * 255, "\u00e4" * 127, os.fsdecode(b"\xff" * 255)):
        write_atomic(tmp_path / name, b"whole")
        assert (tmp_path / name).read_bytes() == b"whole"
    assert len(list(tmp_path.iterdir())) == 3


def test_without_replace_the_first_writer_wins(tmp_path: Path) -> None:
    path = tmp_path / "f"
    write_atomic(path, b"first", replace=False)
    with pytest.raises(FileExistsError):
        write_atomic(path, b"second", replace=False)
    assert (path.read_bytes(), others(path)) == (b"first", [])


def test_two_writers_of_one_process_have_files_of_their_own(tmp_path: Path) -> None:
    path = tmp_path / "f"

    def parts() -> Iterator[bytes]:
        write_atomic(path, b"second")
        yield b"first"

    write_atomic(path, parts())
    assert (path.read_bytes(), others(path)) == (b"first", [])
