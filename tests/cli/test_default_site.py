"""Commands without --site: on a login node, and on a machine without a scheduler."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import Hpctrain

JOB = (
    "name: demo\ncommand: [python, -c, print(1)]\nlauncher: single\nresources: {cpus_per_task: 1}\n"
)
LOGIN = "this host looks like a login node of the Slurm cluster alpha"
MINE = """\
schema: 1
name: mine
description: d
scheduler: slurm
sources: [{what: manual, date: 2026-08-20, confidence: high}]
launchers: {default: torchrun, allowed: [torchrun, single]}
detect: {clusters: [alpha]}
"""


@pytest.fixture
def login(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, hpctrain: Hpctrain) -> Hpctrain:
    """Run commands as on a login node of the cluster alpha, whose controller is down."""
    (tmp_path / "job.yaml").write_text(JOB)
    (tmp_path / "slurm.conf").write_text("ClusterName=alpha\n")
    environment = {"SLURM_CONF": str(tmp_path / "slurm.conf"), "HPCTRAIN_SITE": ""}
    return lambda *words, **more: hpctrain(*words, **{**environment, **more})


@pytest.mark.parametrize("options", [(), ("--dry-run",)])
def test_submit_starts_nothing_on_a_login_node(login: Hpctrain, options: tuple[str, ...]) -> None:
    done = login("submit", "job.yaml", *options)
    assert (done.returncode, done.stdout) == (2, ""), done.stderr
    assert LOGIN in done.stderr and "no job was started" in done.stderr
    assert "hpctrain site init" in done.stderr and "--site local" in done.stderr
    assert not Path("results").exists()


def test_scripts_are_printed_there_with_the_reason(login: Hpctrain) -> None:
    for command in ("render", "explain"):
        done = login(command, "job.yaml")
        assert done.returncode == 0, done.stderr
        assert f"hpctrain: site slurm-generic: {LOGIN}" in done.stderr
    assert "#SBATCH" in login("render", "job.yaml").stdout
    Path("mine.yaml").write_text(MINE)
    done = login("render", "job.yaml")
    assert f"hpctrain: {LOGIN}: site mine (ClusterName alpha)" in done.stderr
    assert "using the profile mine.yaml of this folder" in done.stderr


def test_a_machine_without_a_scheduler_is_local(hpctrain: Hpctrain, tmp_path: Path) -> None:
    (tmp_path / "job.yaml").write_text(JOB)
    alone = {"PATH": str(tmp_path), "HPCTRAIN_SITE": ""}
    if Path("/etc/slurm/slurm.conf").exists():
        pytest.skip("this machine has a slurm.conf")
    done = hpctrain("render", "job.yaml", **alone)
    assert "hpctrain: site local: no scheduler was found on " in done.stderr
    done = hpctrain("render", "job.yaml", "--nodes", "2", **alone)
    assert done.returncode == 2
    assert "--site NAME, one of hpctrain site list" in done.stderr
    Path("mine.yaml").write_text(MINE)
    done = hpctrain("render", "job.yaml", "--nodes", "2", **alone)
    assert "\n  2 nodes: --site mine" in done.stderr
