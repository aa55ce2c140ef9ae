"""Writers that are killed leave nothing for ever, and nobody removes what a live one writes."""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from hpc_train.base.files import new_file, remove_stale, write_atomic
from hpc_train.runs.json_files import write_cache

# Opens a new file beside its target, says so, and waits for an end of its own.
WRITER = """
import sys
from pathlib import Path
from hpc_train.base.files import new_file
with new_file(Path(sys.argv[1])) as stream:
    stream.write(b"half")
    stream.flush()
    print("written", flush=True)
    sys.stdin.read()
    stream.write(b" and half")
"""


def writer(path: Path) -> subprocess.Popen[str]:
    started = subprocess.Popen(
        [sys.executable, "-c", WRITER, str(path)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert started.stdout is not None
    assert started.stdout.readline() == "written\n"
    return started


def others(path: Path) -> list[str]:
    return sorted(entry.name for entry in path.parent.iterdir() if entry != path)


def test_what_a_killed_writer_left_is_removed_by_the_next_one(tmp_path: Path) -> None:
    path = tmp_path / "records.jsonl"
    with writer(path) as killed:
        killed.send_signal(signal.SIGKILL)
    assert killed.returncode == -signal.SIGKILL
    (left,) = others(path)
    assert left.startswith(".records.jsonl.")
    write_atomic(path, b"whole")
    assert (path.read_bytes(), others(path)) == (b"whole", [])


def test_a_link_with_the_name_of_a_stale_file_is_not_followed(tmp_path: Path) -> None:
    path = tmp_path / "records.jsonl"
    with writer(path) as killed:
        killed.kill()
    (tmp_path / "of another").touch()
    left = tmp_path / next(name for name in others(path) if name != "of another")
    left.unlink()
    left.symlink_to("of another")
    remove_stale(path)
    assert left.is_symlink()


def test_a_file_that_was_removed_before_it_was_locked_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "f"
    lock, removed = fcntl.flock, list[str]()

    def late(descriptor: int, how: int) -> None:
        if not removed:
            removed.extend(others(path))
            (tmp_path / removed[0]).unlink()
        lock(descriptor, how)

    monkeypatch.setattr(fcntl, "flock", late)
    write_atomic(path, b"whole")
    assert (len(removed), path.read_bytes()) == (1, b"whole")


def test_a_live_writer_loses_nothing(tmp_path: Path) -> None:
    path = tmp_path / "records.jsonl"
    with writer(path) as alive:
        write_atomic(path, b"another")
        remove_stale(path)
        assert len(others(path)) == 1
        alive.communicate()
    assert alive.returncode == 0
    assert (path.read_bytes(), others(path)) == (b"half and half", [])


def test_files_of_other_machines_and_of_others_names_stay(tmp_path: Path) -> None:
    path = tmp_path / "records.jsonl"
    write_atomic(tmp_path / "x", b"")
    strange = [".records.jsonl.0123456789ab-1-00000000", ".records.jsonl.4242", ".records.jsonl"]
    for name in strange:
        (tmp_path / name).touch()
    write_atomic(path, b"whole")
    assert others(path) == sorted([*strange, "x"])


def test_what_is_kept_already_and_not_written_again_has_no_stale_one_beside_it(
    tmp_path: Path,
) -> None:
    path = tmp_path / "logs.json"
    with writer(path) as killed:
        killed.kill()
    path.write_bytes(b"same")
    write_cache(path, b"same")
    assert others(path) == []


def test_a_writer_that_fails_leaves_the_old_one(tmp_path: Path) -> None:
    path = tmp_path / "f"
    write_atomic(path, b"old")
    with pytest.raises(ZeroDivisionError), new_file(path) as stream:
        stream.write(b"new")
        raise ZeroDivisionError
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
    with new_file(path) as first, new_file(path) as second:
        first.write(b"first")
        second.write(b"second")
    assert (path.read_bytes(), others(path)) == (b"first", [])
