"""Run folders: all or none, found by name, read even when damaged."""

import os
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from hpc_train.base.errors import StoreError, UnknownNameError
from hpc_train.jobs.job import JobLifecycle
from hpc_train.runs.json_files import to_json, write_file
from hpc_train.runs.run import Manifest, Script
from hpc_train.runs.run_folders import create_runs, find, read_run, read_study, run_folders

Entries = Callable[[str], tuple[Manifest, Script]]


def test_a_run_reads_back_as_it_was_written(tmp_path: Path, entry: Entries) -> None:
    (folder,) = create_runs(tmp_path / "j", [entry("r1")])
    found = read_run(folder).manifest
    assert found is not None
    assert to_json(found) == to_json(entry("r1")[0])
    assert found.spec == entry("r1")[0].spec
    assert folder.script.read_text() == "#!/bin/bash\n"
    assert folder.logs.is_dir()
    assert [run.run_id for run in run_folders(tmp_path / "j")] == ["r1"]


def test_the_starts_of_a_job_with_lifecycle_are_read(tmp_path: Path, entry: Entries) -> None:
    manifest, script = entry("r1")
    plan = msgspec.structs.replace(manifest.plan, lifecycle=JobLifecycle())
    (folder,) = create_runs(tmp_path, [(msgspec.structs.replace(manifest, plan=plan), script)])
    assert read_run(folder).starts == ()
    whole = '{"restart": %d, "started": 1.5, "ended": null, "exit_code": null, "step": 7}\n'
    # A full disk cut the line of a start.
    folder.restarts.write_text(whole % 0 + whole[:30] + "\n" + whole % 2)
    assert [(start.restart, start.step) for start in read_run(folder).starts] == [(0, 7), (2, 7)]


def test_a_run_that_is_there_is_left_alone(tmp_path: Path, entry: Entries) -> None:
    home = tmp_path / "j"
    create_runs(home, [entry("r1")])
    (home / "r1" / "logs" / "rank-0.out").write_text("precious")
    assert [run.run_id for run in create_runs(home, [entry("r1"), entry("r2")])] == ["r2"]
    assert (home / "r1" / "logs" / "rank-0.out").read_text() == "precious"


def test_a_folder_that_is_no_run_is_not_taken_for_one(tmp_path: Path, entry: Entries) -> None:
    entries = [entry("a-r1"), entry("a-r2")]
    (tmp_path / "a-r2").mkdir()
    (tmp_path / "a-r2" / "mine.txt").write_text("x")
    with pytest.raises(StoreError, match=r"a-r2: a folder .* \(no run\.json\)"):
        create_runs(tmp_path, entries)
    assert [path.name for path in tmp_path.iterdir()] == ["a-r2"]


def test_what_a_killed_command_left_goes(tmp_path: Path, entry: Entries) -> None:
    for name in (".new-r1-4711/logs", ".gone-r2-4711/logs", ".queue/1"):
        (tmp_path / "j" / name).mkdir(parents=True)
    create_runs(tmp_path / "j", [entry("r1")])
    assert sorted(path.name for path in (tmp_path / "j").iterdir()) == [".queue", "r1"]


def test_when_one_folder_fails_none_is_left(tmp_path: Path, entry: Entries) -> None:
    home = tmp_path / "j"
    with pytest.raises(StoreError, match="cannot be written: File name too long"):
        create_runs(home, [entry("r1"), entry("x" * 300)])
    assert list(home.iterdir()) == []


def test_a_results_folder_that_cannot_be_written(entry: Entries) -> None:
    with pytest.raises(StoreError, match="/proc/hpctrain/j: cannot be written") as failure:
        create_runs(Path("/proc/hpctrain/j"), [entry("r1")])
    assert failure.value.hint == "mkdir -p /proc/hpctrain"


@pytest.mark.parametrize("change", ['"schema": 9', '"schema": 9, "colour": "red"'])
def test_a_manifest_of_a_newer_schema_is_not_guessed_at(
    tmp_path: Path, entry: Entries, change: str
) -> None:
    (folder,) = create_runs(tmp_path, [entry("r1")])
    text = folder.manifest.read_text().replace('"schema": 1', change, 1)
    folder.manifest.write_text(text)
    (tmp_path / "study.json").write_text(text)
    said = "written by a newer hpctrain (schema 9, this one reads 1)"
    assert read_run(folder).problem == f"run.json: {said}"
    with pytest.raises(StoreError) as failure:
        read_study(tmp_path)
    assert failure.value.message == f"{tmp_path}/study.json: {said}"


@pytest.mark.parametrize("word", ["j", "r1-abc", "r1-a", "{tmp}/j", "{tmp}/j/r1-abc"])
def test_runs_are_found_by_name_start_and_path(tmp_path: Path, entry: Entries, word: str) -> None:
    create_runs(tmp_path / "j", [entry("r1-abc"), entry("r2-abc")])
    found = find(tmp_path, word.format(tmp=tmp_path))
    assert found == (tmp_path / "j" if word.endswith("j") else tmp_path / "j" / "r1-abc")


def test_what_is_not_found_names_the_nearest(tmp_path: Path, entry: Entries) -> None:
    create_runs(tmp_path / "digits", [entry("r1"), entry("r2")])
    with pytest.raises(UnknownNameError, match="did you mean 'digits'"):
        find(tmp_path, "digts")
    with pytest.raises(StoreError, match="'r' is the prefix of 2 runs: r1, r2"):
        find(tmp_path, "r")


def test_a_pipe_is_written_to_and_a_link_followed(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    reader = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    write_file(tmp_path / "pipe", b"through")
    assert os.read(reader, 100) == b"through"
    os.close(reader)
    assert (tmp_path / "pipe").is_fifo()
    (tmp_path / "link").symlink_to(tmp_path / "target")
    write_file(tmp_path / "link", b"followed")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "target").read_bytes() == b"followed"
