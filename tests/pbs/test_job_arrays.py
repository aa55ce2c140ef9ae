"""Repetitions of a point are an array of PBS: ranges, ids, and subjobs on a small PBS."""

from __future__ import annotations

import logging
from pathlib import Path

import msgspec
import pytest

from hpc_train.pbs.executor import PbsExecutor
from hpc_train.pbs.jobs import array_of, qsub_calls, subjob
from hpc_train.runs.executor import ExecutorOptions
from hpc_train.runs.run import JobReport, JobState, RunFolder, Submission
from hpc_train.sites.profile import Limits
from tests.pbs.test_executor import pbs
from tests.servers.pbs import RunningPbs
from tests.slurm.made import runs as make
from tests.submissions.waiting import wait_for

__all__ = ["pbs"]
EXECUTOR = PbsExecutor()
TEXT = "#!/bin/bash\n#PBS -j oe\n#PBS -k doe\n#PBS -r n\n"


def runs(tmp_path: Path, text: str, *names: str) -> list[RunFolder]:
    made = make(tmp_path / "home", *names, text=f"{TEXT}{text}\n")
    for run in made:
        run.logs.mkdir(exist_ok=True)
    return made


def submission(run: RunFolder) -> Submission:
    return msgspec.json.decode(run.submission.read_bytes(), type=Submission)


def reports(made: list[RunFolder]) -> list[JobReport]:
    found = EXECUTOR.query({run: submission(run) for run in made})
    return [found[run] for run in made]


def states(made: list[RunFolder]) -> list[str]:
    return [one.state.value for one in reports(made)]


def submit(made: list[RunFolder], **limits: int) -> None:
    EXECUTOR.submit(made[0].path.parent, made, ExecutorOptions(limits=Limits(**limits)))


def ids(made: list[RunFolder]) -> list[str]:
    return [submission(run).native_id for run in made]


@pytest.mark.parametrize(
    ("numbers", "size", "ranges"),
    [
        ("123", 9, ["1-3"]), ("246", 9, ["2-6:2"]), ("1257", 9, ["1-2", "5-7:2"]),
        ("1346", 9, ["1-3:2", "4-6:2"]), ("12345", 2, ["1-2", "3-4", ""]), ("7", 9, [""]),
        ("123", 1, ["", "", ""]), ("123", 0, ["", "", ""]),
    ],
)  # fmt: skip
def test_repetitions_are_ranges(tmp_path: Path, numbers: str, size: int, ranges: list[str]) -> None:
    made = make(tmp_path, *(f"p-r{number}.2" for number in numbers))
    calls = qsub_calls(made, size)
    assert [call.indices for call in calls] == ranges
    assert sorted(run.run_id for call in calls for run in call.runs) == sorted(
        run.run_id for run in made
    )
    marked = {call.folder for call in calls if call.indices}
    assert marked <= {f"{tmp_path}/p-r^array_index^.2"}


def test_points_attempts_and_scripts_are_apart(tmp_path: Path) -> None:
    made = make(tmp_path, "a-r1", "b-r2", "a-r3.2") + make(tmp_path, "a-r2", text="other\n")
    assert [call.indices for call in qsub_calls(made, 9)] == [""] * 4


def test_ids() -> None:
    assert subjob("41[].srv.site", "_3") == "41[3].srv.site"
    assert subjob("41.srv", "") == "41.srv"
    assert array_of("41[3].srv") == array_of("41[].srv") == "41[].srv"
    assert array_of("41.srv[3]") == "41.srv[3]"


def test_each_run_of_an_array_has_its_folder_log_and_state(pbs: RunningPbs, tmp_path: Path) -> None:
    made = runs(tmp_path, 'echo "$HPCTRAIN_RUN"; exit $PBS_ARRAY_INDEX', "p, x-r1", "p, x-r2")
    submit(made)
    assert ids(made) == ["1[1].pbs", "1[2].pbs"]
    assert submission(made[0]).command[:5] == ("qsub", "-J", "1-2", "-r", "y")
    wait_for(lambda: states(made) == ["FAILED", "FAILED"])
    assert [one.reason for one in reports(made)] == ["exit code 1", "exit code 2"]
    folder = f"{tmp_path}/home/p, x-r^array_index^\n"
    assert [(run.logs / "job.out").read_text() for run in made] == [folder] * 2


def test_one_run_of_an_array_is_cancelled(pbs: RunningPbs, tmp_path: Path) -> None:
    made = runs(tmp_path, "sleep 300", "p-r1", "p-r2", "p-r3")
    submit(made, max_array_running=1)
    wait_for(lambda: states(made) == ["RUNNING", "PENDING", "PENDING"])
    assert reports(made)[1].reason == ""
    for run in (made[1], made[0]):
        EXECUTOR.cancel(run.path.parent, {run: submission(run)})
    assert [submission(run).state for run in made[:2]] == [JobState.CANCELLED] * 2
    wait_for(lambda: states(made) == ["CANCELLED", "CANCELLED", "RUNNING"])
    EXECUTOR.cancel(made[0].path.parent, {run: submission(run) for run in made})
    wait_for(lambda: states(made) == ["CANCELLED"] * 3)


def test_a_held_array_says_so(pbs: RunningPbs, tmp_path: Path) -> None:
    made = runs(tmp_path, "#PBS -h\ntrue", "p-r1", "p-r2")
    submit(made)
    assert {one.reason for one in reports(made)} == {"it is held by its owner; qrls releases it"}


def test_a_lost_answer_finds_the_array(pbs: RunningPbs, tmp_path: Path) -> None:
    pbs.fault("lost-answer")
    made = runs(tmp_path, "sleep 300", "p-r1", "p-r2")
    submit(made)
    assert ids(made) == ["1[1].pbs", "1[2].pbs"]
    assert pbs.command("qselect", "-x").stdout.split() == ["1[].pbs"]


def test_a_killed_submission_finds_its_subjob(pbs: RunningPbs, tmp_path: Path) -> None:
    made = runs(tmp_path, "sleep 300", "p-r1", "p-r2")
    submit(made)
    lost = {
        run: msgspec.structs.replace(submission(run), native_id=f"_{number}")
        for number, run in enumerate(made, start=1)
    }
    found = EXECUTOR.query(lost)
    assert [found[run].job for run in made] == ["1[1].pbs", "1[2].pbs"]
    assert {found[run].state.active for run in made} == {True}


def test_sizes_of_the_profile_and_of_the_server(pbs: RunningPbs, tmp_path: Path) -> None:
    made = runs(tmp_path, "true", *(f"p-r{number}" for number in range(1, 6)))
    submit(made, max_array_size=2)
    assert ids(made) == ["1[1].pbs", "1[2].pbs", "2[3].pbs", "2[4].pbs", "3.pbs"]
    other = runs(tmp_path, "true", "q-r1", "q-r2")
    answers(pbs, "max_array_size = 1")
    submit(other)
    assert ids(other) == ["4.pbs", "5.pbs"]


def test_an_old_pbs_has_no_limit_of_running_subjobs(
    pbs: RunningPbs, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    answers(pbs, "pbs_version = 19.1.3")
    made = runs(tmp_path, "true", "p-r1", "p-r2")
    with caplog.at_level(logging.WARNING):
        submit(made, max_array_running=1)
    assert submission(made[0]).command[:3] == ("qsub", "-J", "1-2")
    assert caplog.messages == [
        "PBS 19.1.3 cannot limit running subjobs: max_array_running has no effect"
    ]


def answers(pbs: RunningPbs, line: str) -> None:
    """Let the server say this of itself."""
    program = pbs.folder / "bin" / "qstat"
    first, second = program.read_text().splitlines()
    program.write_text(f"{first}\n[ \"$1\" != -B ] || exec echo '    {line}'\n{second}\n")
