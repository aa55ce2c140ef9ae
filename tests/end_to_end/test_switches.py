"""Switches of a real slurmctld: what doctor says of them, and a drafted profile."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from hpc_train.lab.state_file import Lab
from tests.conftest import pointed_at
from tests.end_to_end.user import user_of

pytestmark = [pytest.mark.slurm]


def test_switches_of_the_cluster(
    lab_with: Callable[..., Lab], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Four nodes on two leaf switches."""
    lab = pointed_at(lab_with("--nodes-per-switch", "2"), monkeypatch)
    user = user_of(lab, tmp_path)
    conf = f"{lab.settings.folder}/slurm.conf"
    doctor = user.hpctrain("doctor", SLURM_CONF=conf).stdout
    assert "topology     2 leaf switches of 2 nodes" in doctor
    assert "a job of at most 2 nodes: --switches=1@TIME" in doctor
    drafted = user.hpctrain("site", "init", "drafted", SLURM_CONF=conf)
    assert drafted.returncode == 0, drafted.stderr
    text = (user.folder / "site_profiles" / "drafted.yaml").read_text()
    assert "nodes_per_switch: 2  # scontrol show topology: 2 leaf switches of 2 nodes" in text
