"""Many batches: the next sbatch starts early, and nothing of it is lost or doubled."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpc_train.errors import SubmitError
from hpc_train.submissions.base import ExecutorOptions
from hpc_train.submissions.slurm.executor import _MANY, submit_batches
from hpc_train.submissions.slurm.job_arrays import batches
from tests.submissions.slurm.fake_slurm import FakeSlurm, option
from tests.submissions.slurm.made import runs, submission

NAMES = [f"p{number}-r1" for number in range(_MANY)]


def test_each_is_asked_once_and_has_its_own_answer(slurm: FakeSlurm, tmp_path: Path) -> None:
    made = runs(tmp_path, *NAMES)
    submit_batches(batches(made, 1001), ExecutorOptions())
    calls = slurm.calls("sbatch")
    comments = {f"{1001 + number}": option(call, "comment") for number, call in enumerate(calls)}
    assert {submission(run).native_id: submission(run).comment for run in made} == comments
    assert len(comments) == _MANY


def test_a_refusal_loses_nothing_that_was_under_way(slurm: FakeSlurm, tmp_path: Path) -> None:
    made = runs(tmp_path, *NAMES)
    third = made[2].script
    refuse = "echo 'sbatch: error: Invalid qos specification' >&2; exit 1"
    slurm.on("sbatch", f'case "$*" in *{third}*) {refuse} ;; esac')
    with pytest.raises(SubmitError, match=r"^3 of 16 runs were submitted, then: .*Invalid qos"):
        submit_batches(batches(made, 1001), ExecutorOptions())
    there = [run.run_id for run in made if run.submission.exists()]
    assert there == ["p0-r1", "p1-r1", "p3-r1"]
    assert all(submission(run).answered for run in made if run.submission.exists())
    assert len(slurm.calls("sbatch")) == 4


def test_two_refusals_are_one_error(slurm: FakeSlurm, tmp_path: Path) -> None:
    made = runs(tmp_path, *NAMES)
    slurm.on("sbatch", "echo 'sbatch: error: Invalid qos specification' >&2; exit 1")
    with pytest.raises(SubmitError, match=r"^sbatch: Invalid qos specification"):
        submit_batches(batches(made, 1001), ExecutorOptions())
    assert not any(run.submission.exists() for run in made)
    assert len(slurm.calls("sbatch")) == 2


def test_the_users_comment_stands_behind_the_mark(slurm: FakeSlurm, tmp_path: Path) -> None:
    made = runs(tmp_path, "p-r1")
    submit_batches(batches(made, 0), ExecutorOptions(comment="for $(ada), größe"))
    comment = submission(made[0]).comment
    assert comment.startswith("hpctrain:")
    assert comment.endswith(" for $(ada), größe")
    assert option(slurm.calls("sbatch")[0], "comment") == comment


def test_a_few_keep_their_order(slurm: FakeSlurm, tmp_path: Path) -> None:
    made = runs(tmp_path, *NAMES[1:])
    submit_batches(batches(made, 1001), ExecutorOptions())
    ids = [submission(run).native_id for run in made]
    assert ids == [str(1001 + number) for number in range(_MANY - 1)]
