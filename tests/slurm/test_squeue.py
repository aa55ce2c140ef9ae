"""squeue: what a real one printed, and what nobody should."""

import logging
from pathlib import Path

import pytest
from hypothesis import example, given, strategies as st

from hpc_train.runs.run import JobReport, JobState, SlurmEndpoint
from hpc_train.slurm.job_states import (
    FIELD,
    RECORD,
    base_ids,
    epoch,
    job_ids,
    parse_queue,
    selection,
    squeue,
)
from tests.slurm.fake_slurm import FakeSlurm

ANSWERS = Path(__file__).parent / "answers"


def job_reports(name: str) -> dict[str, JobReport]:
    return {
        f"{entry.job} {entry.name}": entry.report
        for entry in parse_queue((ANSWERS / name).read_text())
    }


def record(*fields: str) -> str:
    return FIELD.join(fields) + RECORD + "\n"


def test_waiting_jobs_say_why(caplog: pytest.LogCaptureFixture) -> None:
    found = job_reports("squeue_waiting.txt")
    assert {report.state for report in found.values()} == {JobState.PENDING}
    assert {name: report.reason.split(";")[0] for name, report in found.items()} == {
        "224 runs": "it is next, and waits for free nodes",
        "225 resources": "jobs of higher priority are scheduled first",
        "226 priority": "jobs of higher priority are scheduled first",
        "227 held|with\nodd name": "it is held by its user",
        "228_1 arr": "it is held by its user",
        "228_5 arr": "it is held by its user",
        "228_7 arr": "it is held by its user",
        "228_9 arr": "it is held by its user",
        "229 dep": "it waits for another job that it depends on",
        "230 begin": "its start time has not been reached: it was requested, or the job was "
        "requeued",
        "231 het": "it is held by its user",
    }
    assert found["229 dep"].start is None
    assert found["226 priority"].start == epoch("2026-11-21T06:52:00")
    assert caplog.text == ""


def test_a_comment_is_kept_whatever_it_holds() -> None:
    comments = {
        entry.job: entry.comment
        for entry in parse_queue((ANSWERS / "squeue_waiting.txt").read_text())
        if entry.comment
    }
    assert comments == {"225": "hpctrain:0123456789abcdef", "227": "a|b\nc"}


def test_ended_and_requeued_jobs() -> None:
    found = job_reports("squeue_ended.txt")
    states: dict[JobState, list[str]] = {}
    for name, report in found.items():
        states.setdefault(report.state, []).append(name.partition(" ")[2])
    assert states == {
        JobState.CANCELLED: ["cancelled", "held|with\nodd name"],
        JobState.COMPLETED: ["arr", "arr", "a|b", "high"],
        JobState.FAILED: ["exit7", "signal9", "nolog"],
        JobState.PENDING: [
            "arr", "requeued", "notavail", "requeuehold", "noderequeue", "special",
        ],
        JobState.PREEMPTED: ["norequeue"],
        JobState.RUNNING: ["arr"],
        JobState.SUSPENDED: ["suspended"],
        JobState.NODE_FAIL: ["nodefail"],
    }  # fmt: skip
    assert found["250 exit7"].reason == "it ended with an exit code other than 0"
    assert found["264 notavail"].reason.endswith("(UnavailableNodes:lab3)")
    assert found["256 special"].reason.startswith("it was requeued and is held")
    assert found["250 exit7"].nodes == "lab1"


def test_a_job_cancelled_before_its_start_has_none() -> None:
    found = job_reports("squeue_ended.txt")
    assert found["248 held|with\nodd name"].start is None
    assert found["253 cancelled"].start == epoch("2026-11-21T06:51:44")


def test_the_states_of_nodes_are_said() -> None:
    configuring = record("7", "CONFIGURING", "N/A", "n1", "None", "a", "(null)")
    completing = record("8", "COMPLETING", "N/A", "n1", "NonZeroExitCode", "a", "(null)")
    first, second = parse_queue(configuring + completing)
    assert first.report.reason == "its nodes are being prepared"
    assert (second.report.state, second.report.reason) == (JobState.RUNNING, "it is ending")


def test_the_lines_between_clusters_are_passed_over(caplog: pytest.LogCaptureFixture) -> None:
    job = ("RUNNING", "N/A", "n1", "None", "a", "(null)")
    text = f"CLUSTER: one\n{record('7', *job)}\nCLUSTER: two\n{record('8', *job)}\nCLUSTER: three\n"
    assert [entry.job for entry in parse_queue(text)] == ["7", "8"]
    assert caplog.text == ""


@pytest.mark.parametrize(
    "line",
    ["nonsense", record("7", "RUNNING"), record("x7", "RUNNING", "N/A", "", "None", "a", "")],
)
def test_a_record_of_another_shape_is_named_and_left_out(
    line: str, caplog: pytest.LogCaptureFixture
) -> None:
    good = record("9", "RUNNING", "N/A", "", "None", "a", "")
    with caplog.at_level(logging.WARNING):
        assert [entry.job for entry in parse_queue(good + line)] == ["9"]
    assert repr(line.rstrip("\n" + RECORD).lstrip("\n"))[1:-1] in caplog.text


PIECES = st.sampled_from(
    ["7", "7_3", "7_[1-3]", "7+0", "RUNNING", "CANCELLED by 0", "N/A", "2026-11-21T06:22:50", "\n"]
)


@given(st.lists(st.one_of(st.text(max_size=9), PIECES, st.sampled_from([FIELD, RECORD]))))
@example(["7_[1-99999999999999]", *[FIELD] * 6, RECORD])
@example(["9" * 5000, *[FIELD] * 6, RECORD])
@example(["7_[" + "9" * 5000 + "]", *[FIELD] * 6, RECORD])
def test_no_text_breaks_it(pieces: list[str]) -> None:
    for entry in parse_queue("".join(pieces)):
        assert entry.job[0].isdecimal()


@pytest.mark.parametrize(
    ("word", "jobs"),
    [
        ("123", ["123"]),
        ("123_4", ["123_4"]),
        ("123_[4]", ["123_4"]),
        ("123_[1-3,7%2]", ["123_1", "123_2", "123_3", "123_7"]),
        ("123_[1-9:4]", ["123_1", "123_5", "123_9"]),
        ("123+0", ["123"]),
        ("123+1", []),
    ],
)
def test_ids_of_arrays_and_heterogeneous_jobs(word: str, jobs: list[str]) -> None:
    assert list(job_ids(word)) == jobs


@pytest.mark.parametrize("word", ["", "12.batch", "12_", "12_[]", "12_[1-]", "12_[1,...]", "a"])
def test_other_ids_are_refused(word: str) -> None:
    with pytest.raises(ValueError):
        job_ids(word)


def test_one_question_names_each_job_once() -> None:
    assert base_ids({"12_1", "12_2", "7", "_3", "", "x"}) == ("7", "12")
    assert selection(["12_1", "7"]) == ["--jobs=7,12"]
    assert selection([str(10**9 + job) for job in range(20_000)]) == []


@pytest.mark.parametrize("code", [0, 1])
def test_an_error_is_a_failure_even_with_0(slurm: FakeSlurm, code: int) -> None:
    slurm.on("squeue", f"echo 'squeue: error: Invalid user: x' >&2; exit {code}")
    assert squeue(SlurmEndpoint(), (), user="x").failure == "Invalid user: x"


def test_no_jobs_are_no_question(slurm: FakeSlurm) -> None:
    assert squeue(SlurmEndpoint(), ["_3", ""]).entries == ()
    assert slurm.calls("squeue") == []


def test_the_words_of_the_question(slurm: FakeSlurm) -> None:
    slurm.on("squeue", f"cat {ANSWERS}/squeue_waiting.txt; exit")
    answer = squeue(SlurmEndpoint(), ["228_5", "228_7", "224"])
    assert sorted(entry.job for entry in answer.entries) == ["224", "228_5", "228_7"]
    (words,) = slurm.calls("squeue")
    # By itself squeue lists neither jobs of every state nor hidden partitions (man squeue).
    options = {"--jobs=224,228", "--all", "--states=all", "--array", "--noheader"}
    assert options <= set(words)
    assert not any(word.startswith("--user") for word in words)
    answer = squeue(SlurmEndpoint(), (), user="ada")
    assert len(answer.entries) == 11
    _, words = slurm.calls("squeue")
    assert "--user=ada" in words
    assert not any(word.startswith("--jobs") for word in words)
