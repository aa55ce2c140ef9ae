"""The files of a history: named by start and content, and a reason for each that cannot be read."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from hpc_train.errors import StoreError
from hpc_train.model.track import TrackEntry
from hpc_train.runs.track_files import path_of, read_history, store
from tests.tables.histories import entry, point

HOSTILE = ["../../etc", "..", ".git", "a/b", "new\nline", "nul\0byte", "ü" * 200, "\x1b[31m", "%2F"]


def stored(folder: Path, day: int = 0, speed: float = 100.0) -> Path:
    path = store(folder, entry(day, point(speed)))
    assert path is not None
    return path


def named(folder: Path, site: str) -> TrackEntry:
    return TrackEntry(
        schema=1, site=site, study=site, started="2026-01-01T03:00:00Z", conditions={}, points=()
    )


def damaged(folder: Path) -> str:
    (line,) = read_history(folder).damaged
    return line


def test_an_entry_is_read_as_it_was_stored(tmp_path: Path) -> None:
    made = entry(3, point(100.0), torch="2.9")
    path = store(tmp_path, made)
    assert path is not None
    assert path.parent == tmp_path / "marvin" / "gpt"
    assert path.name.startswith("2026-01-04T030000Z-")
    (one,) = read_history(tmp_path).entries
    assert (one.path, one.entry) == (path, made)


def test_storing_twice_is_storing_once(tmp_path: Path) -> None:
    path = stored(tmp_path)
    before = path.stat().st_mtime_ns
    assert store(tmp_path, entry(0, point(100.0))) is None
    assert path.stat().st_mtime_ns == before
    assert len(read_history(tmp_path).entries) == 1


def test_entries_are_in_order_of_time(tmp_path: Path) -> None:
    for day in (5, 1, 3):
        stored(tmp_path, day)
    days = [one.entry.started[8:10] for one in read_history(tmp_path).entries]
    assert days == ["02", "04", "06"]


def test_two_branches_merge(tmp_path: Path) -> None:
    def git(*words: str) -> None:
        named = ("-c", "user.name=a", "-c", "user.email=a@b")
        subprocess.run(["git", *named, *words], cwd=tmp_path, check=True, capture_output=True)

    git("init", "-b", "main")
    stored(tmp_path / "history", 0)
    git("add", ".")
    git("commit", "-m", "first")
    git("checkout", "-b", "other")
    stored(tmp_path / "history", 1)
    stored(tmp_path / "history", 2)
    git("add", ".")
    git("commit", "-m", "other")
    git("checkout", "main")
    stored(tmp_path / "history", 1)
    stored(tmp_path / "history", 3)
    git("add", ".")
    git("commit", "-m", "both added the second")
    git("merge", "other", "-m", "merge")
    history = read_history(tmp_path / "history")
    assert len(history.entries) == 4
    assert history.damaged == ()


@pytest.mark.parametrize("name", HOSTILE)
def test_no_name_leaves_the_folder(tmp_path: Path, name: str) -> None:
    folder = tmp_path / "history"
    path = store(folder, named(folder, name))
    assert path is not None
    assert path.resolve().is_relative_to(folder.resolve())
    assert len(path.relative_to(folder).parts) == 3
    assert path.relative_to(folder).as_posix().isprintable()
    (one,) = read_history(folder).entries
    assert one.entry.site == name


def test_hostile_names_stay_different(tmp_path: Path) -> None:
    paths = {path_of(tmp_path, named(tmp_path, name)).parent for name in [*HOSTILE, "a%2Fb"]}
    assert len(paths) == len(HOSTILE) + 1


def test_a_conflict_of_git_is_named_with_its_line(tmp_path: Path) -> None:
    path = stored(tmp_path)
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join([*lines[:3], "<<<<<<< HEAD\n", lines[3], "=======\n", *lines[3:]]))
    assert damaged(tmp_path) == f"{path}:4: a conflict of git that is not resolved"


def test_a_newer_entry_is_named(tmp_path: Path) -> None:
    path = stored(tmp_path)
    path.write_text(path.read_text().replace('"schema": 1', '"schema": 7'))
    newer = "written by a newer hpctrain (schema 7, this one reads 1)"
    assert damaged(tmp_path) == f"{path}:2: {newer}"


def test_a_truncated_entry_is_named_with_its_last_line(tmp_path: Path) -> None:
    path = stored(tmp_path)
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(lines[:6]))
    assert damaged(tmp_path).startswith(f"{path}:7: damaged: Input data was truncated")


def test_a_wrong_value_is_named_with_its_line(tmp_path: Path) -> None:
    path = stored(tmp_path)
    text = path.read_text().replace('"n_ok": 2', '"n_ok": "two"')
    path.write_text(text)
    line = text[: text.index('"n_ok"')].count("\n") + 1
    assert damaged(tmp_path).startswith(f"{path}:{line}: damaged: Expected `int`, got `str`")


def test_a_changed_value_is_seen(tmp_path: Path) -> None:
    path = stored(tmp_path)
    path.write_text(path.read_text().replace("100.0", "200.0"))
    assert "changed after it was stored" in damaged(tmp_path)


@pytest.mark.parametrize("content", [b"", b"[]", b"\xff\xfe", b"[" * 100_000, b"null"])
def test_other_content_is_damage(tmp_path: Path, content: bytes) -> None:
    stored(tmp_path, 1)
    path = stored(tmp_path)
    path.write_bytes(content)
    history = read_history(tmp_path)
    assert len(history.entries) == 1
    assert history.damaged[0].startswith(f"{path}:1: damaged: ")


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    path = stored(tmp_path)
    path.unlink()
    os.mkfifo(path)
    assert damaged(tmp_path) == f"{path}: cannot be read: a FIFO, not a regular file"


def test_files_of_others_are_left_alone(tmp_path: Path) -> None:
    path = stored(tmp_path)
    for name in ("README.md", ".git/a/b.json", "marvin/notes.txt", "marvin/gpt/page.html"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("x")
    history = read_history(tmp_path)
    assert [one.path for one in history.entries] == [path]
    assert history.damaged == ()


def test_no_folder_is_said(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=r"there is no history") as caught:
        read_history(tmp_path / "none")
    assert "hpctrain track add" in caught.value.hint


def test_a_folder_that_cannot_be_written_or_read(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("x")
    with pytest.raises(StoreError, match=r"cannot be written: Not a directory"):
        store(file, entry(0, point(1.0)))
    with pytest.raises(StoreError, match=r"file: cannot be read: Not a directory"):
        read_history(file)
