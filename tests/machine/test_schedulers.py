"""Which scheduler a machine belongs to: its files and variables, else what scontrol answers."""

import os
from pathlib import Path

import pytest

from hpc_train.base.processes import Answer, Ask
from hpc_train.sites import detection
from hpc_train.sites.detection import Scheduler, cluster_name, find_scheduler

SILENT = "Could not establish a configuration source"
DOWN = "Unable to contact slurm controller (connect failure)"


def asked(text: str = "", problem: str = "") -> Ask:
    return lambda *_, **__: Answer(text=text, problem=problem)


def never(*argv: str, **_: object) -> Answer:
    raise AssertionError(f"{argv} was started")


@pytest.fixture
def bare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return an empty folder for PATH, on a machine without any configuration."""
    monkeypatch.setattr(detection, "CONF_FILES", (tmp_path / "etc" / "slurm.conf",))
    monkeypatch.setattr(detection, "PBS_FILES", (tmp_path / "etc" / "pbs.conf",))
    (tmp_path / "bin").mkdir()
    (tmp_path / "etc").mkdir()
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    return tmp_path


def program(folder: Path, name: str) -> None:
    path = folder / "bin" / name
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)


def test_a_slurm_conf_is_a_cluster_and_nothing_is_started(bare: Path) -> None:
    conf = bare / "etc" / "slurm.conf"
    conf.write_text("# ClusterName=old\nAuthType=auth/munge\n clustername = alpha # ours\n")
    found, problem = find_scheduler({}, never)
    evidence = f"ClusterName in {conf}"
    assert (found, problem) == (Scheduler(kind="Slurm", cluster="alpha", evidence=evidence), "")


def test_the_conf_of_the_shell_comes_first(bare: Path) -> None:
    (bare / "etc" / "slurm.conf").write_text("ClusterName=alpha\n")
    (bare / "mine.conf").write_text("ClusterName=beta\n")
    found, _ = find_scheduler({"SLURM_CONF": str(bare / "mine.conf")}, never)
    assert found is not None and found.cluster == "beta"
    found, _ = find_scheduler({"SLURM_CLUSTER_NAME": "gamma", "SLURM_CONF": "/no"}, never)
    assert found is not None and found.cluster == "gamma"


@pytest.mark.parametrize("problem", [DOWN, SILENT, "not installed"])
def test_a_conf_without_a_name_is_a_cluster_while_the_controller_is_down(
    bare: Path, problem: str
) -> None:
    (bare / "etc" / "slurm.conf").write_text("Include name.conf\n")
    found, why = find_scheduler({}, asked(problem=problem))
    assert found == Scheduler(kind="Slurm", evidence=str(bare / "etc" / "slurm.conf"))
    assert why == problem


@pytest.mark.parametrize(
    ("problem", "slurm"), [("not installed", False), (SILENT, False), (DOWN, True)]
)
def test_programs_alone_are_no_cluster(bare: Path, problem: str, slurm: bool) -> None:
    found, why = find_scheduler({}, asked(problem=problem))
    assert (found is not None) == slurm
    assert why == ("" if problem == "not installed" else problem)


def test_a_slurm_without_a_file_answers(bare: Path) -> None:
    found, _ = find_scheduler({}, asked("Configuration data\nClusterName             = delta\n"))
    assert found is not None
    assert found.title == "the Slurm cluster delta"
    assert found.evidence == "ClusterName of `scontrol show config`"


@pytest.mark.parametrize(
    ("command", "env", "kind"),
    [
        ("qsub", {}, None),
        ("bsub", {}, None),
        ("qsub", {"PBS_CONF_FILE": "etc/pbs.conf"}, "PBS"),
        ("qsub", {"SGE_ROOT": "/opt/sge"}, "Grid Engine"),
        ("bsub", {"LSF_ENVDIR": "/opt/lsf/conf"}, "LSF"),
        (
            "true",
            {"SGE_ROOT": "/opt/sge", "LSF_ENVDIR": "/l", "PBS_CONF_FILE": "etc/pbs.conf"},
            None,
        ),
    ],
)
def test_other_schedulers_are_a_command_with_its_configuration(
    bare: Path,
    monkeypatch: pytest.MonkeyPatch,
    command: str,
    env: dict[str, str],
    kind: str | None,
) -> None:
    monkeypatch.chdir(bare)
    (bare / "etc" / "pbs.conf").write_text("PBS_SERVER=head\n")
    monkeypatch.setattr(detection, "PBS_FILES", ())
    program(bare, command)
    found, _ = find_scheduler(env, asked(problem="not installed"))
    assert (found and found.kind) == kind


@pytest.mark.parametrize("kind", ["fifo", "folder", "none", "binary", "long"])
def test_a_strange_conf_has_no_name(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "slurm.conf"
    if kind == "fifo":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    elif kind != "none":
        path.write_bytes(b"\xff\0" * 99 if kind == "binary" else b"ClusterName=" + b" " * 99_999)
    assert cluster_name(path) == ""
