"""Everything about a lab that is text: settings, commands, configuration files, profile."""

from pathlib import Path

import pytest

from hpc_train.base.errors import LabError
from hpc_train.base.values import Memory
from hpc_train.lab.lab import profile_text
from hpc_train.lab.requirements import overlap
from hpc_train.lab.settings import Settings, check, differences
from hpc_train.sites.load import load_site

SMALL = Settings(nodes=2, gpus=1, gpu_type="h100", mem=Memory(2048), cpus=4)


@pytest.mark.parametrize(
    "settings",
    [
        Settings(gpu_type="a100:2"),
        Settings(gpu_type=""),
        Settings(folder="here"),
        Settings(folder="/"),
        Settings(folder="/srv/with blank"),
        Settings(folder="/srv/../etc"),
        Settings(folder="/srv/" + "long" * 20),
    ],
)
def test_refused_settings(settings: Settings) -> None:
    with pytest.raises(LabError, match="--"):
        check(settings)


def test_differences_are_named_as_options() -> None:
    assert differences(SMALL, SMALL) == ()
    other = Settings(nodes=2, gpus=1, gpu_type="a100", mem=Memory(2048), cpus=4, accounting=True)
    assert differences(SMALL, other) == ("--gpu-type h100 instead of a100", "without --accounting")
    assert differences(other, SMALL)[-1] == "with --accounting"


@pytest.mark.parametrize("has_mpi", [True, False])
@pytest.mark.parametrize("settings", [SMALL, Settings(gpus=0, gpu_type="off")])
def test_profile_can_be_loaded(tmp_path: Path, settings: Settings, *, has_mpi: bool) -> None:
    path = tmp_path / "lab.yaml"
    path.write_text(profile_text(settings, "24.11.5", "2026-11-01", pmix=has_mpi, mpirun=has_mpi))
    site = load_site(str(path)).value
    assert (site.name, site.slurm) == ("lab", "24.11.5")
    assert ("mpirun" in site.launchers.allowed) is has_mpi
    assert ("mpirun" in site.launchers.forbidden) is not has_mpi
    assert site.launchers.mpi == ("pmix" if has_mpi else None)
    assert [part.name for part in site.partitions] == ["gpu", "long"]
    assert {part.mem_per_node for part in site.partitions} == {settings.mem}
    assert {part.gpus_per_node for part in site.partitions} == {settings.gpus}
    assert set(site.env) == set(site.env_why)
    assert site.env["GLOO_SOCKET_IFNAME"] == "ib0"


@pytest.mark.parametrize(
    ("route", "taken"),
    [
        ("10.77.3.0/24 dev eth1 proto kernel scope link src 10.77.3.1", "10.77.0.0/16"),
        ("local 10.78.0.1 dev lo table local", "10.78.0.0/16"),
        ("broadcast 10.77.255.255 dev eth1 table local", "10.77.0.0/16"),
        ("10.76.0.0/16 dev eth1 scope link", ""),
        ("10.0.0.0/8 via 192.168.1.1 dev tun0", ""),
        ("default via 10.77.0.1 dev eth0", ""),
        ("unreachable 0.0.0.0/1", ""),
    ],
)
def test_networks_in_use(route: str, taken: str) -> None:
    assert overlap(route) == taken
