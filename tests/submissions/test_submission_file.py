"""submission.json is the old one or the new one; status.json is read whatever it holds."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpc_train.runs.json_files import mark, read_json, status_of
from hpc_train.runs.run import Failure, JobState, RunFolder, SlurmEndpoint, Submission
from hpc_train.runs.run_states import has_ended

ASKED = Submission(
    executor="slurm",
    native_id="",
    submitted="2026-11-21T01:00:00+00:00",
    cluster=SlurmEndpoint(conf="/x", poll_s=5.0),
    comment="hpctrain:a",
    command=("sbatch", "ä b"),
    shared=True,
)


@pytest.fixture
def run(tmp_path: Path) -> RunFolder:
    return RunFolder(path=tmp_path)


def test_an_end_is_added_to_what_was_there(run: RunFolder) -> None:
    mark(run, ASKED, JobState.CANCELLED, "by you")
    found = read_json(run.submission, Submission)
    assert (found.state, found.reason) == (JobState.CANCELLED, "by you")
    assert (found.comment, found.command) == (ASKED.comment, ASKED.command)


@pytest.mark.parametrize("content", [None, "", "{", "[]", '{"ended": 2}', '{"started": "x"}'])
def test_a_job_that_says_nothing_readable(run: RunFolder, content: str | None) -> None:
    if content is not None:
        run.status.write_text(content)
    assert status_of(run) is None
    assert not has_ended(status_of(run))


def test_what_a_job_says(run: RunFolder) -> None:
    run.status.write_text('{"started": 1.5, "ended": null, "job": "7_1", "pid": 9}')
    found = status_of(run)
    assert found is not None
    assert (found.started, found.job, found.pid) == (1.5, "7_1", 9)
    assert not has_ended(status_of(run))
    run.status.write_text(
        '{"started": 1.5, "ended": 2, "exit_code": 3, '
        '"failure": {"rank": null, "host": "n1", "exit_code": 3}}'
    )
    assert has_ended(status_of(run))
    found = status_of(run)
    assert found is not None
    assert found.failure == Failure(rank=None, host="n1", exit_code=3)
