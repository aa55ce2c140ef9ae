"""How Slurm's commands are asked, and which of their errors pass."""

from pathlib import Path

import pytest

from hpc_train.base.processes import Finished
from hpc_train.runs.run import SlurmEndpoint
from hpc_train.slurm.slurm_commands import broken_nodes, call_slurm, transient, unanswered
from tests.cases import cases
from tests.slurm.fake_slurm import BUSY, FakeSlurm, option


@pytest.mark.parametrize("said", cases("slurm/errors.yaml", "passing"))
def test_errors_that_pass(said: str) -> None:
    assert transient(said)
    assert transient(f"sbatch: warning: something before it\n{said}\n")


@pytest.mark.parametrize("said", cases("slurm/errors.yaml", "lasting"))
def test_errors_that_stay(said: str) -> None:
    assert not transient(said)


@pytest.mark.parametrize(
    ("done", "said"),
    [
        (Finished(returncode=0, stdout="", stderr=""), ""),
        (Finished(returncode=0, stdout="7", stderr="squeue: error: one of many"), ""),
        (Finished(returncode=0, stdout="", stderr="squeue: error: Invalid user: x\n"),
         "Invalid user: x"),
        (Finished(returncode=1, stdout="", stderr="a\nsqueue: fatal: b\n"), "b"),
        (Finished(returncode=1, stdout="", stderr="scancel: error: Unable to establish control "
                  "machine address\nscancel: error: Kill job error on job id 5: No error"),
         "Unable to establish control machine address"),
        (Finished(returncode=3, stdout="", stderr=""), "exit code 3"),
    ],
)  # fmt: skip
def test_why_there_is_no_answer(done: Finished, said: str) -> None:
    assert unanswered(done) == said


@pytest.fixture
def printenv(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make squeue a program that prints its environment."""
    (tmp_path / "squeue").write_text("#!/bin/sh\nenv\n")
    (tmp_path / "squeue").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")


def asked(cluster: SlurmEndpoint) -> dict[str, str]:
    done = call_slurm(cluster, "squeue")
    assert done.returncode == 0, done.stderr
    return dict(line.split("=", 1) for line in done.stdout.splitlines())


def test_nothing_of_an_outer_job_or_of_the_users_options_reaches_the_command(
    printenv: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("SLURM_JOB_ID", "SLURM_TIME_FORMAT", "SQUEUE_STATES", "SCANCEL_INTERACTIVE"):
        monkeypatch.setenv(name, "1")
    monkeypatch.setenv("LC_ALL", "de_DE.UTF-8")
    names = asked(SlurmEndpoint())
    assert not {"SLURM_JOB_ID", "SLURM_TIME_FORMAT", "SQUEUE_STATES", "SCANCEL_INTERACTIVE"} & set(
        names
    )
    assert names["LC_ALL"] == "C"


def test_the_conf_that_was_noted_wins(
    printenv: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    ours, theirs = tmp_path / "ours.conf", tmp_path / "theirs.conf"
    ours.touch()
    theirs.touch()
    monkeypatch.delenv("SLURM_CONF", raising=False)
    assert "SLURM_CONF" not in asked(SlurmEndpoint())
    assert asked(SlurmEndpoint(conf=str(ours)))["SLURM_CONF"] == str(ours)
    monkeypatch.setenv("SLURM_CONF", str(theirs))
    assert asked(SlurmEndpoint(conf=str(ours)))["SLURM_CONF"] == str(ours)
    assert asked(SlurmEndpoint())["SLURM_CONF"] == str(theirs)


def test_the_clusters_that_were_noted_win(printenv: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLURM_CLUSTERS", "shell")
    assert asked(SlurmEndpoint())["SLURM_CLUSTERS"] == "shell"
    assert asked(SlurmEndpoint(clusters="noted"))["SLURM_CLUSTERS"] == "noted"
    assert "SLURM_CLUSTERS" not in asked(SlurmEndpoint(clusters="")), "the default one"


def test_each_broken_node_once(slurm: FakeSlurm) -> None:
    # sinfo --Node names a node once for each of its partitions.
    slurm.on("sinfo", "printf 'n3\\nn1\\nn3\\n'")
    assert broken_nodes(SlurmEndpoint()) == ("n1", "n3")
    (argv,) = slurm.calls("sinfo")
    assert option(argv, "states") == "down,drain,fail"
    assert option(argv, "format") == "%N"


def test_a_silent_slurm_blames_nobody(slurm: FakeSlurm) -> None:
    slurm.on("sinfo", f"echo '{BUSY}' >&2; exit 1")
    assert broken_nodes(SlurmEndpoint()) == ()
