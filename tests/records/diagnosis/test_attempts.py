"""Logs that several attempts were written to, and errors that a job survived."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpc_train.model.diagnosis import Diagnosis
from tests.records.diagnosis.logs import EXIT_1, GPU_OOM, STOP, judged, root, trace

STEPS = "".join(f"step {number} | loss 2.5 | 1.2 s/it\n" for number in range(1000))
FEW = "step 1 | loss 2.5\nstep 2 | loss 2.4\nstep 3 | loss 2.3\nstep 4 | loss 2.2\n"
REQUEUED = (
    "slurmstepd: error: *** JOB 82 ON n1 CANCELLED AT 2025-04-24T11:46:38 DUE TO PREEMPTION ***\n"
)
HEAD = "Loading the environment of the project\n"
RESTART = "[default] Worker group FAILED. 3/3 attempts left; will restart worker group\n"


def outcomes(found: Diagnosis) -> list[str]:
    return [*(one.outcome for one in found.earlier), found.outcome]


@pytest.mark.parametrize(
    "banner",
    [
        "nohup: ignoring input\n",
        "using world size: 8, data-parallel-size: 8\n",
        "***** Running training *****\n",
        "# nThread 1 nGpus 8 minBytes 8\n",
        "[2025-01-31 12:00:00,1] [INFO] [runner.py:568:main] cmd = python -u a.py\n",
        "SLURM_JOB_ID=4711\n",
    ],
)
def test_the_last_attempt_is_judged(tmp_path: Path, banner: str) -> None:
    log = banner + trace("ValueError: x") + banner + FEW + "Training completed\n"
    found = judged(tmp_path, log)
    assert outcomes(found) == ["failed", "success"]
    assert (found.earlier[0].id, found.earlier[0].line) == ("python_exception", 1)
    assert found.line == log[: log.rindex(banner)].count("\n") + 1


def test_the_last_attempt_may_fail(tmp_path: Path) -> None:
    nohup = "nohup: ignoring input\n"
    found = judged(tmp_path, nohup + "Training completed\n" + nohup + FEW + trace("KeyError: 'a'"))
    assert outcomes(found) == ["success", "failed"]
    assert root(found).title == "KeyError: 'a'"


def test_the_work_of_the_next_attempt_survives_nothing_of_the_one_before(tmp_path: Path) -> None:
    nohup = "nohup: ignoring input\n"
    log = nohup + trace("ValueError: x") + nohup + STEPS + "Training completed\n"
    found = judged(tmp_path, log)
    assert outcomes(found) == ["failed", "success"]
    assert found.earlier[0].id == "python_exception"


def test_a_job_that_was_queued_again_begins_with_its_first_line(tmp_path: Path) -> None:
    found = judged(tmp_path, HEAD + FEW + REQUEUED + HEAD + FEW + "Training completed\n")
    assert outcomes(found) == ["failed", "success"]
    assert found.earlier[0].id == "slurm_preempted"
    found = judged(tmp_path, HEAD + FEW + EXIT_1 + HEAD + FEW)
    assert outcomes(found) == ["failed", "unknown"]


def test_workers_that_torchrun_started_again(tmp_path: Path) -> None:
    found = judged(tmp_path, FEW + trace("ValueError: x") + RESTART + FEW + trace(GPU_OOM))
    assert outcomes(found) == ["failed", "failed"]
    assert root(found).id == "cuda_oom"


# job.out of a run on the lab: Slurm 22.05 preempted the first start, the second ended with 1.
TWO_STARTS = """\
slurmstepd-lab1: error: *** STEP 4.0 ON lab1 CANCELLED AT 2026-11-28T04:59:15 DUE TO PREEMPTION ***
slurmstepd-lab1: error: *** JOB 4 ON lab1 CANCELLED AT 2026-11-28T04:59:15 DUE TO PREEMPTION ***
srun: error: lab2: task 1: Exited with exit code 143
Terminated
hpctrain: restart 1
srun: error: lab1: task 0: Exited with exit code 1
"""


def test_the_script_of_a_job_marks_each_start(tmp_path: Path) -> None:
    found = judged(tmp_path, TWO_STARTS, "begun\n\nhpctrain: restart 1\n" + trace("KeyError: 'a'"))
    assert outcomes(found) == ["failed", "failed"]
    assert (found.earlier[0].id, root(found).title) == ("slurm_preempted", "KeyError: 'a'")
    assert found.line == 3


def test_a_log_that_began_in_a_later_start_has_the_numbers_of_the_others(tmp_path: Path) -> None:
    job = TWO_STARTS + "hpctrain: restart 2\n" + EXIT_1
    later = trace("ValueError: x") + "hpctrain: restart 2\n" + trace("KeyError: 'a'")
    found = judged(tmp_path, job, later, trace("KeyError: 'b'"))
    ids = ["slurm_preempted", "python_exception"]
    assert ([one.id for one in found.earlier], root(found).id) == (ids, "python_exception")
    assert (found.earlier[1].title, root(found).title) == ("ValueError: x", "KeyError: 'a'")


def test_a_number_of_a_restart_that_no_job_reaches_is_none(tmp_path: Path) -> None:
    """An attempt for each number before it would take minutes."""
    begun = "hpctrain: restart 1\n" + trace("ValueError: x")
    found = judged(tmp_path, begun + "hpctrain: restart 999999\n" + trace("KeyError: 'a'"))
    assert len(found.earlier) <= 1


def test_ranks_that_begin_with_one_line_are_one_attempt(tmp_path: Path) -> None:
    found = judged(tmp_path, HEAD * 3 + trace("ValueError: x") + HEAD * 3 + EXIT_1)
    assert outcomes(found) == ["failed"]
    assert root(found).id == "python_exception"


def test_ranks_that_begin_with_a_line_of_mlperf_are_one_attempt(tmp_path: Path) -> None:
    start = STOP.replace("run_stop", "run_start").replace("success", "")
    assert outcomes(judged(tmp_path, start * 3 + FEW + STOP)) == ["success"]
    assert outcomes(judged(tmp_path, start + FEW + STOP + start + FEW + STOP)) == ["success"] * 2


def test_files_that_disagree_are_one_attempt(tmp_path: Path) -> None:
    nohup = "nohup: ignoring input\n"
    one = nohup + FEW + trace("ValueError: x") + nohup + FEW
    found = judged(tmp_path, one, one + trace("ValueError: y") + nohup)
    assert not found.earlier
    both = judged(tmp_path, one, one)
    assert outcomes(both) == ["failed", "unknown"]


def test_work_that_went_on_survived_the_error(tmp_path: Path) -> None:
    found = judged(tmp_path, trace("ValueError: caught") + STEPS)
    assert (found.outcome, found.root) == ("unknown", None)
    assert [(one.id, one.severity) for one in found.findings] == [("python_exception", "info")]
    assert "went on after the errors" in found.why
    late = judged(tmp_path, trace("ValueError: caught") + STEPS + trace("KeyError: 'a'"))
    assert root(late).title == "KeyError: 'a'"


def test_what_a_buffer_held_is_no_work_after_the_error(tmp_path: Path) -> None:
    found = judged(tmp_path, trace("ValueError: x") + STEPS[:8000])
    assert root(found).id == "python_exception"


def test_a_word_of_a_tool_before_the_work_is_a_note(tmp_path: Path) -> None:
    missing = "python: can't open file 'a.py': [Errno 2] No such file or directory\n"
    assert judged(tmp_path, missing + FEW).outcome == "unknown"
    assert root(judged(tmp_path, FEW + missing)).id == "file_missing"


def test_a_failure_after_a_stage_counts(tmp_path: Path) -> None:
    done = "Training finished\n"
    assert judged(tmp_path, trace("ValueError: x") + done).outcome == "success"
    assert root(judged(tmp_path, done + EXIT_1)).id == "exit_error"


def test_a_script_does_not_make_good_what_the_program_says(tmp_path: Path) -> None:
    aborted = ':::MLLOG {"key": "run_stop", "metadata": {"status": "aborted"}}\n'
    result = "RESULT,transformer,16374,1201,,2019-06-25 01:35:31 AM\n"
    assert root(judged(tmp_path, aborted + result)).id == "mlperf_aborted"
