"""Commands without --site: on a login node, and on a machine without a scheduler."""

from pathlib import Path

import pytest

from tests.cli.conftest import Hpctrain

JOB = (
    "name: demo\ncommand: [python, -c, print(1)]\nlauncher: single\nresources: {cpus_per_task: 1}\n"
)
LOGIN = "this host looks like a login node of the Slurm cluster alpha"


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
