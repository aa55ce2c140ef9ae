"""Profiles: where they are found, and what is refused."""

from pathlib import Path

import pytest

from hpc_train.base.errors import SiteProfileError, UnknownNameError
from hpc_train.sites.load import Machine, load_site, this_machine
from tests.cases import cases

SITE = """\
schema: 1
name: mine
description: d
scheduler: slurm
launchers: {default: srun, allowed: [srun]}
"""


@pytest.fixture
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HPCTRAIN_SITE_PATH", str(tmp_path / "sites"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    (tmp_path / "sites").mkdir()
    return tmp_path


def test_local_is_filled_with_this_machine() -> None:
    site = load_site("local", Machine(cpus=12, gpus=3))
    assert site.value.partitions[0].cpus_per_node == 12
    assert site.value.partitions[0].gpus_per_node == 3
    assert site.origin("partitions.0.cpus_per_node") == "this machine"
    assert site.origin("rendezvous.port").startswith("site_profiles/local.yaml:")


def test_hidden_gpus_are_not_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    assert this_machine().gpus == 0
    assert this_machine().cpus >= 1


def test_an_unknown_site_names_the_nearest(elsewhere: Path) -> None:
    with pytest.raises(UnknownNameError, match="unknown site 'locl'; did you mean 'local'"):
        load_site("locl")


@pytest.mark.parametrize(
    ("change", "message"),
    cases("sites/mistakes.yaml", "a_wrong_profile"),
)
def test_a_wrong_profile(elsewhere: Path, change: tuple[str, str], message: str) -> None:
    path = elsewhere / "sites" / "mine.yaml"
    path.write_text(SITE.replace(*change))
    with pytest.raises(SiteProfileError, match=r"mine\.yaml:\d") as failure:
        load_site("mine")
    assert message in failure.value.message
