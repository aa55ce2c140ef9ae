"""How jobs stand: the queue first, the accounting for what it forgot, and silence is UNKNOWN."""

import pytest

from hpc_train.runs.run import JobReport, JobState, SlurmEndpoint
from hpc_train.slurm.job_states import FIELD, RECORD, job_reports
from tests.slurm.fake_slurm import BUSY, FakeSlurm, option

SINCE = "2026-11-20"
RUNNING = FIELD.join(("1", "RUNNING", "2026-11-21T01:00:00", "n[1-2]", "None", "j", "c"))
BUSY_DATABASE = "sacct: error: slurm_persist_conn_open_without_init: failed to open persistent \
connection to host:db:6819: Connection refused"


def past(job: str, state: str, code: str = "0:0") -> str:
    return FIELD.join((job, state, "2026-11-21T01:00:00", "n1", code, "None", "j"))


def ask(*jobs: str) -> dict[str, JobReport]:
    return job_reports(SlurmEndpoint(), dict.fromkeys(jobs, ""), SINCE)


def test_the_queue_is_enough_for_what_it_knows(slurm: FakeSlurm) -> None:
    (slurm.folder / "queue").write_text(f"{RUNNING}{RECORD}\n")
    found = ask("1")
    assert (found["1"].state, found["1"].nodes, found["1"].job) == (
        JobState.RUNNING,
        "n[1-2]",
        "1",
    )
    assert option(slurm.calls("squeue")[0], "jobs") == "1"
    assert slurm.calls("sacct") == []


def test_the_accounting_is_asked_for_the_rest(slurm: FakeSlurm) -> None:
    (slurm.folder / "queue").write_text(f"{RUNNING}{RECORD}\n")
    slurm.on("sacct", f"echo '{past('2_7', 'FAILED', '7:0')}'; echo '{past('3', 'TIMEOUT')}'; exit")
    found = ask("1", "2_7", "3", "4")
    assert {job: (s.state, s.job) for job, s in found.items()} == {
        "1": (JobState.RUNNING, "1"),
        "2_7": (JobState.FAILED, "2_7"),
        "3": (JobState.TIMEOUT, "3"),
        "4": (JobState.LOST, ""),
    }
    assert found["2_7"].reason == "exit code 7"
    (argv,) = slurm.calls("sacct")
    assert option(argv, "jobs") == "2,3,4"
    assert option(argv, "starttime") == "2026-11-19"


def test_a_silent_queue_makes_all_of_them_unknown(slurm: FakeSlurm) -> None:
    slurm.on("squeue", f"echo '{BUSY}' >&2; exit 1")
    slurm.on("sacct", f"echo '{past('1', 'COMPLETED')}'; exit")
    found = ask("1", "2")
    assert {report.state for report in found.values()} == {JobState.UNKNOWN}
    assert found["1"].reason == f"Slurm does not answer: {BUSY}"
    assert slurm.calls("sacct") == []


def test_a_silent_accounting_makes_the_rest_unknown(slurm: FakeSlurm) -> None:
    (slurm.folder / "queue").write_text(f"{RUNNING}{RECORD}\n")
    slurm.on("sacct", f"echo '{BUSY_DATABASE}' >&2; exit 1")
    found = ask("1", "2")
    assert (found["1"].state, found["2"].state) == (JobState.RUNNING, JobState.UNKNOWN)
    assert "Connection refused" in found["2"].reason


def test_without_accounting_what_is_forgotten_is_lost(slurm: FakeSlurm) -> None:
    found = ask("2")
    assert found["2"].state is JobState.LOST
    assert found["2"].reason == "Slurm no longer knows it, and it recorded no end"
    assert found["2"].job == "", "it must be asked for again: the accounting may come back"


def test_ids_that_slurm_does_not_know_are_no_failure(slurm: FakeSlurm) -> None:
    slurm.on("squeue", "echo 'slurm_load_jobs error: Invalid job id specified' >&2; exit 1")
    assert ask("2")["2"].state is JobState.LOST


@pytest.mark.parametrize("word", ["RUNNING", "PENDING"])
def test_the_accounting_alone_cannot_say_that_a_job_goes_on(slurm: FakeSlurm, word: str) -> None:
    slurm.on("sacct", f"echo '{past('2', word)}'; exit")
    found = ask("2")["2"]
    assert (found.state, found.job) == (JobState.UNKNOWN, "2")
    assert found.reason == f"it is {word} in the accounting, but not in the queue"


def test_a_strangers_job_of_the_same_number_is_not_ours(slurm: FakeSlurm) -> None:
    """Ids start at 1 again when a Slurm is set up anew."""
    text = RUNNING[:-1] + "hpctrain:theirs"
    (slurm.folder / "queue").write_text(f"{text}{RECORD}\n")
    assert job_reports(SlurmEndpoint(), {"1": "hpctrain:ours"}, SINCE)["1"].state is JobState.LOST
    assert (
        job_reports(SlurmEndpoint(), {"1": "hpctrain:theirs"}, SINCE)["1"].state is JobState.RUNNING
    )
    assert ask("1")["1"].state is JobState.RUNNING, "whoever names no comment means any job"


def test_an_array_that_ended_whole_has_no_elements(slurm: FakeSlurm) -> None:
    whole = FIELD.join(("9", "CANCELLED", "N/A", "", "None", "j", "c"))
    (slurm.folder / "queue").write_text(f"{whole}{RECORD}\n")
    found = ask("9_1", "9_2")
    assert {job: s.state for job, s in found.items()} == dict.fromkeys(
        ("9_1", "9_2"), JobState.CANCELLED
    )


def test_words_that_are_no_answer_make_nothing_lost(slurm: FakeSlurm) -> None:
    slurm.on("squeue", "echo 'slurm: maintenance today'; exit 0")
    assert ask("1")["1"].state is JobState.UNKNOWN
