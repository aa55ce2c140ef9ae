"""sbatch --test-only: its verdict, on one line."""

from pathlib import Path

import pytest

from hpc_train.base.processes import Finished
from hpc_train.runs.run import SlurmEndpoint
from hpc_train.slurm.sbatch import answer_of, ask_sbatch, test_only as verdict
from hpc_train.slurm.slurm_commands import environment_changes, notices
from tests.cases import cases
from tests.slurm.fake_slurm import FakeSlurm

ERRORS = "slurm/errors.yaml"


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "j"
    path.write_text("#!/bin/bash\n#SBATCH --partition=short\n")
    return path


@pytest.mark.parametrize(("body", "said"), cases(ERRORS, "answers_of_test_only"))
def test_a_verdict(slurm: FakeSlurm, script: Path, body: str, said: str) -> None:
    slurm.on("sbatch", body)
    assert verdict(SlurmEndpoint(), script) == said
    assert slurm.calls("sbatch") == [["--test-only", str(script)]]


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


INSIDE = {
    "SLURM_JOB_ID": "7",
    "SLURM_CPU_BIND": "mask",
    "PMIX_RANK": "0",
    "OMPI_COMM_WORLD_RANK": "0",
    "SLURM_CONF": "/etc/slurm.conf",
    "HOME": "/root",
}


def test_the_outer_job_is_removed_and_named() -> None:
    changes = environment_changes(INSIDE, SlurmEndpoint(), ())
    assert changes == dict.fromkeys(
        ("SLURM_JOB_ID", "SLURM_CPU_BIND", "PMIX_RANK", "OMPI_COMM_WORLD_RANK")
    )
    (said,) = notices(INSIDE, {})
    assert said.startswith("this shell is inside Slurm job 7; 4 of its variables (SLURM_JOB_ID,")


def test_what_the_script_sets_wins_and_the_rest_stays() -> None:
    found = {"SBATCH_PARTITION": "long", "SBATCH_ACCOUNT": "a", "SBATCH_WAIT": "1"}
    found["SBATCH_OUTPUT"] = "mine.log"
    ignored = {"SBATCH_OUTPUT", "SBATCH_PARTITION", "SBATCH_WAIT"}
    assert set(environment_changes(found, SlurmEndpoint(), ["partition"])) == ignored
    assert notices(found, {"partition": "own"}) == (
        "SBATCH_ACCOUNT=a is effective: sbatch reads it as --account",
        "SBATCH_OUTPUT=mine.log is ignored: the submission decides on --output itself",
        "SBATCH_PARTITION=long is ignored: the script sets --partition itself",
        "SBATCH_WAIT=1 is ignored: the submission decides on --wait itself",
    )


def test_a_clusters_conf_is_given_unless_there_is_one() -> None:
    cluster = SlurmEndpoint(conf="/lab/slurm.conf")
    assert environment_changes({}, cluster, ())["SLURM_CONF"] == "/lab/slurm.conf"
    assert "SLURM_CONF" not in environment_changes({"SLURM_CONF": "/mine"}, cluster, ())


@pytest.mark.parametrize(
    ("names", "said"),
    [
        (["RANK"], "RANK of this shell is not passed on"),
        (["A_B", "RANK", "PMIX_RANK"], "RANK, PMIX_RANK of this shell are not passed on"),
        (
            ["RANK", "PMI_ID", "NNODES", "PET_X", "HPCTRAIN_TURN"],
            "RANK, PMI_ID, NNODES and 2 more of this shell are not passed on",
        ),
    ],
)
def test_what_is_left_behind_outside_a_job_is_named(names: list[str], said: str) -> None:
    assert notices(dict.fromkeys(names, "1"), {}) == (said,)


OWN = {
    "OMPI_MCA_btl_tcp_if_include": "ib0",
    "PMIX_MCA_gds": "hash",
    "PRTE_MCA_rmaps": "x",
    "LOCAL_SCRATCH": "/scratch",
}


def test_what_a_user_told_mpi_stays_outside_a_job() -> None:
    ranks = {"LOCAL_RANK": "0", "LOCAL_WORLD_SIZE": "2"}
    assert set(environment_changes(OWN | ranks, SlurmEndpoint(), ())) == set(ranks)
    inside = OWN | ranks | {"SLURM_JOB_ID": "7"}
    assert set(environment_changes(inside, SlurmEndpoint(), ())) == set(inside)


def test_a_configuration_that_cannot_be_read_is_not_waited_for(
    slurm: FakeSlurm, script: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SLURM_CONF", "/nonexistent/slurm.conf")
    done = ask_sbatch(SlurmEndpoint(), script, ())
    assert done.stderr == "SLURM_CONF=/nonexistent/slurm.conf cannot be read"
    assert slurm.calls("sbatch") == []
