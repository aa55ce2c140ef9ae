"""The checkpoint that each start of a job left: the one that the next start could load."""

import os
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from hpc_train.jobs.job import JobLifecycle
from hpc_train.runs.expected_runs import time_lost_s
from hpc_train.runs.run import JobStart, JobStatus, Manifest, RunFolder
from hpc_train.runs.run_folders import read_starts, with_loadable_steps
from tests.runs.conftest import Entry

FIRST = JobStart(restart=0, started=1000.0, ended=1100.0, step=20, reached=24, saved=1080.0)
SECOND = JobStart(
    restart=1, started=1200.0, ended=1300.0, step=40, reached=43, saved=1290.0, resumed=1210.0,
    loaded=20, loaded_saved=1080.0,
)  # fmt: skip
THIRD = JobStart(
    restart=2, started=1400.0, ended=1500.0, step=60, reached=60, saved=1500.0, resumed=1410.0,
    loaded=40, loaded_saved=1290.0,
)  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    """Return the folder of a run of which one start has ended."""
    (tmp_path / "restarts.jsonl").write_bytes(msgspec.json.encode(FIRST) + b"\n")
    (tmp_path / "checkpoints").mkdir()
    return RunFolder(path=tmp_path)


@pytest.fixture
def manifest(entry: Callable[[str], Entry]) -> Manifest:
    made, _ = entry("r")
    plan = msgspec.structs.replace(made.plan, lifecycle=JobLifecycle())
    return msgspec.structs.replace(made, plan=plan)


def fell_back(start: JobStart, loaded: int, saved: float | None) -> JobStart:
    return msgspec.structs.replace(start, loaded=loaded, loaded_saved=saved)


def test_undamaged_checkpoints_stay() -> None:
    starts = (FIRST, SECOND, THIRD)
    assert with_loadable_steps(starts, None) == starts
    assert [start.steps_lost for start in starts] == [4, 3, 0]


@pytest.mark.parametrize(
    ("loaded", "saved", "lost", "seconds"),
    [
        pytest.param(30, 1250.0, [4, 13], (1210 - 1080) + (1410 - 1250), id="of-this-start"),
        pytest.param(20, 1080.0, [4, 23], (1210 - 1080) + (1410 - 1210), id="of-the-start-before"),
        pytest.param(8, 1040.0, [16, 23], (1210 - 1040) + (1410 - 1210), id="earlier"),
        pytest.param(0, None, [24, 23], (1210 - 1000) + (1410 - 1210), id="none"),
    ],
)
def test_the_steps_after_the_one_that_was_loaded_are_lost(
    loaded: int, saved: float | None, lost: list[int], seconds: float
) -> None:
    """Each step that is trained again is counted for one start."""
    last = fell_back(THIRD, loaded, saved)
    starts = with_loadable_steps((FIRST, SECOND, last), None)
    assert [start.steps_lost for start in starts] == [*lost, 0]
    # 24 steps, 23 from 20 on, and those up to 60: together without the 60 that remain.
    assert sum(lost) == 24 + (43 - 20) + (60 - loaded) - 60
    assert starts[1].damaged == 40
    status = JobStatus(started=1400.0, ended=1500.0, restart_count=2)
    assert time_lost_s(starts, status) == seconds


def test_the_start_that_runs_has_noted_what_it_loaded(
    folder: RunFolder, manifest: Manifest
) -> None:
    noted = folder.path / "checkpoints" / "resumed"
    noted.write_text("8 1040.0\n")
    status = JobStatus(started=1200.0, restart_count=1)
    (start,) = read_starts(folder, manifest, status)
    assert (start.step, start.damaged, start.saved) == (8, 20, 1040.0)
    # Noted by an earlier start.
    os.utime(noted, (1150.0, 1150.0))
    assert read_starts(folder, manifest, status) == (FIRST,)


@pytest.mark.parametrize("text", ["", "x 5", "9" * 200])
def test_a_note_that_is_none_is_ignored(folder: RunFolder, manifest: Manifest, text: str) -> None:
    named = folder.path / "elsewhere"
    named.mkdir()
    plan = msgspec.structs.replace(manifest.plan, env=(("HPCTRAIN_CHECKPOINTS", str(named)),))
    manifest = msgspec.structs.replace(manifest, plan=plan)
    status = JobStatus(started=1200.0, restart_count=1)
    (named / "resumed").write_text(text)
    assert read_starts(folder, manifest, status) == (FIRST,)
    (named / "resumed").write_text("8 1040.0\n")
    assert read_starts(folder, manifest, status)[0].step == 8
