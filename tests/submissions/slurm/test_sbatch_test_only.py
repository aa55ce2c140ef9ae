"""sbatch --test-only: its verdict, on one line."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpc_train.model.submission import SlurmEndpoint
from hpc_train.submissions.slurm.sbatch_test_only import answer_of, ask_sbatch, shell_variables
from hpc_train.submissions.slurm.sbatch_test_only import test_only as verdict
from hpc_train.subprocesses import Finished
from tests.submissions.slurm.fake_slurm import FakeSlurm


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "j"
    path.write_text("#!/bin/bash\n#SBATCH --partition=short\n")
    return path


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("echo 'sbatch: Job 9 to start at 2026-11-21T06:52:00 using 2 processors on nodes n1' >&2; "
         "exit 0",
         "Job 9 to start at 2026-11-21T06:52:00 using 2 processors on nodes n1"),
        ("echo 'sbatch: error: invalid partition specified: x' >&2\n"
         "echo 'allocation failure: Invalid partition name specified' >&2; exit 1",
         "refused: invalid partition specified: x; allocation failure: Invalid partition name "
         "specified (sinfo -s lists the partitions; name one with --partition)"),
        ("echo 'allocation failure: Kittens' >&2; exit 1", "refused: allocation failure: Kittens"),
    ],
)  # fmt: skip
def test_a_verdict(slurm: FakeSlurm, script: Path, body: str, said: str) -> None:
    slurm.on("sbatch", body)
    assert verdict(SlurmEndpoint(), script) == said
    assert slurm.calls("sbatch") == [["--test-only", str(script)]]


def test_the_site_s_configuration_is_used(slurm: FakeSlurm, tmp_path: Path, script: Path) -> None:
    conf = tmp_path / "slurm.conf"
    conf.touch()
    verdict(SlurmEndpoint(conf=str(conf)), script)
    assert slurm.environment()["SLURM_CONF"] == str(conf)


def test_sbatch_sees_what_it_will_see_at_the_submission(
    slurm: FakeSlurm, script: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("SBATCH_QOS", "SBATCH_PARTITION", "SLURM_JOB_ID", "PMIX_RANK"):
        monkeypatch.setenv(name, "1")
    verdict(SlurmEndpoint(), script)
    found = slurm.environment()
    assert found["SBATCH_QOS"] == "1"
    assert not {"SBATCH_PARTITION", "SLURM_JOB_ID", "PMIX_RANK"} & found.keys()


UNSPECIFIED = "allocation failure: Unspecified error"


def finished(stderr: str, returncode: int = 1, stdout: str = "") -> Finished:
    return Finished(returncode=returncode, stdout=stdout, stderr=stderr)


def test_a_plan_is_read_among_other_lines() -> None:
    text = (
        "sbatch: lua: your project has 12 hours left\n"
        "sbatch: error: Ignoring -S since it's not allowed\n"
        "sbatch: Job 2 to start at 2026-11-23T18:36:24 using 1 processors on nodes n1\n"
    )
    answer = answer_of(finished(text, 0))
    assert answer.outcome == "accepted"
    assert answer.words == "to start at 2026-11-23T18:36:24 using 1 processors on nodes n1"
    assert answer.warnings == ("Ignoring -S since it's not allowed",)


@pytest.mark.parametrize(
    "done",
    [
        finished("allocation failure: Socket timed out on send/recv operation"),
        finished("allocation failure: Unable to contact slurm controller (connect failure)"),
        finished("sbatch: fatal: Could not establish a configuration source"),
        finished("SLURM_CONF=/gone cannot be read", 127),
        finished("no answer within 30.0 s", 124),
        finished("allocation failure: Incompatible versions of client and server code"),
        finished(f"sbatch: error: Zero Bytes were transmitted or received\n{UNSPECIFIED}"),
        finished(f"sbatch: error: Unable to contact slurm controller\n{UNSPECIFIED}"),
        finished(f"sbatch: error: invalid protocol version 11264\n{UNSPECIFIED}"),
    ],
    ids=range(9),
)
def test_no_answer_is_no_refusal(done: Finished) -> None:
    answer = answer_of(done)
    assert (answer.outcome, answer.refusal) == ("unanswered", None)
    assert answer.words in done.stderr


def test_a_refusal_of_a_second_controller_is_a_refusal() -> None:
    first = "sbatch: error: Unable to contact slurm controller"
    text = f"{first}\nallocation failure: Invalid qos specification"
    assert answer_of(finished(text)).outcome == "refused"


@pytest.mark.parametrize("stray", ["", "a "])
def test_the_plan_has_no_stray_word(stray: str) -> None:
    plan = "using 4 processors on nodes a in partition a"
    text = f"sbatch: Job 6 to start at 2026-11-23T18:36:24 {stray}{plan}\n"
    answer = answer_of(finished(text, 0))
    assert answer.words == f"to start at 2026-11-23T18:36:24 {plan}"


def test_a_message_has_the_line_and_the_word_that_it_names() -> None:
    quote = answer_of(finished('sbatch: fatal: j: line 12: Unmatched `"` in [--partition="x]'))
    assert quote.line == 12
    word = answer_of(finished("sbatch: error: Invalid directive found in batch script: word"))
    assert (word.line, word.stray) == (0, "word")
    assert answer_of(finished("")).words == "exit code 1"


def test_a_configuration_that_cannot_be_read_is_not_waited_for(
    slurm: FakeSlurm, script: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SLURM_CONF", "/nonexistent/slurm.conf")
    done = ask_sbatch(SlurmEndpoint(), script, ())
    assert done.stderr == "SLURM_CONF=/nonexistent/slurm.conf cannot be read"
    assert slurm.calls("sbatch") == []


def test_the_shell_s_variables_are_named_with_what_happens_to_them() -> None:
    environment = {"SBATCH_QOS": "q", "SBATCH_PARTITION": "p", "SBATCH_WAIT": "1", "HOME": "/"}
    found = shell_variables(environment, {"partition"})
    assert [(one.name, one.option, one.removed) for one in found] == [
        ("SBATCH_PARTITION", "partition", True),
        ("SBATCH_QOS", "qos", False),
    ]
