"""Everything about a lab that is text: settings, commands, configuration files, profile."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpc_train.base.errors import HpcTrainError, LabError
from hpc_train.base.units import Memory
from hpc_train.lab.network import build, namespaces
from hpc_train.lab.profile import MpiPrograms, profile_text
from hpc_train.lab.requirements import overlap
from hpc_train.lab.settings import Settings, check, differences, memory, nodes_of
from hpc_train.lab.slurm_conf import gres_conf, hosts, slurm_conf
from hpc_train.sites.load import load_site

SMALL = Settings(nodes=2, gpus=1, gpu_type="h100", mem=Memory(2048), cpus=4)
ALL = MpiPrograms(pmix=True, mpirun=True)


def test_nodes_have_a_name_and_two_addresses() -> None:
    last = nodes_of(Settings(nodes=200))[-1]
    assert (last.name, last.eth0, last.ib0) == ("lab200", "10.77.0.200", "10.78.0.200")


@pytest.mark.parametrize(
    "settings",
    [
        Settings(eth0_rate="fast"),
        Settings(eth0_rate="0mbit"),
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


def test_allowed_settings() -> None:
    check(Settings())
    check(Settings(eth0_rate="2.5gbit", gpu_type="MI250X", folder="/srv/lab-1.2"))


def test_memory_needs_a_unit() -> None:
    assert memory("4G") == Memory(4096)
    with pytest.raises(HpcTrainError, match="--mem"):
        memory("4000")


def test_differences_are_named_as_options() -> None:
    assert differences(SMALL, SMALL) == ()
    other = Settings(nodes=2, gpus=1, gpu_type="a100", mem=Memory(2048), cpus=4, accounting=True)
    assert differences(SMALL, other) == ("--gpu-type h100 instead of a100", "without --accounting")
    assert differences(other, SMALL)[-1] == "with --accounting"


def test_network_commands() -> None:
    lines = [" ".join(command) for command in build(SMALL)]
    assert [line for line in lines if "netns add" in line] == [
        f"ip netns add {name}" for name in namespaces(SMALL)
    ]
    shaped = [line for line in lines if line.startswith("tc")]
    assert len(shaped) == SMALL.nodes
    assert all("dev eth0 root tbf rate 200mbit" in line for line in shaped)
    # On the machine itself: three commands for its one interface, and nothing else.
    own = ("ip link", "ip addr")
    assert [line.split()[3] for line in lines if line.startswith(own)] == [
        "hpctlab",
        "10.77.0.254/16",
        "hpctlab",
    ]


def test_slurm_conf() -> None:
    lines = slurm_conf(SMALL).splitlines()
    assert "NodeName=lab2 NodeAddr=10.77.0.2 CPUs=4 RealMemory=2048 Gres=gpu:h100:1 " in "".join(
        line for line in lines if line.startswith("NodeName=lab2")
    )
    assert "DefMemPerCPU=512" in lines
    assert "AuthInfo=socket=/var/tmp/hpctrain-lab/munge/socket" in lines
    assert not [line for line in lines if line.startswith(("Accounting", "Preempt"))]


def test_slurm_conf_with_accounting_and_without_gpus() -> None:
    text = slurm_conf(Settings(accounting=True, gpus=0))
    assert "AccountingStorageType=accounting_storage/slurmdbd" in text
    assert "PreemptMode=REQUEUE" in text
    assert "gpu:" not in text
    assert "GresTypes" not in text
    assert gres_conf(Settings(gpus=0)) == ""


def test_each_gpu_has_a_device() -> None:
    assert gres_conf(Settings(nodes=2, gpus=2)).splitlines() == [
        f"NodeName=lab1,lab2 Name=gpu Type=a100 File=/var/tmp/hpctrain-lab/dev/gpu{index}"
        for index in (0, 1)
    ]


def test_hosts() -> None:
    lines = hosts(SMALL, "login").splitlines()
    assert {"10.77.0.254 login", "10.77.0.2 lab2", "10.78.0.2 lab2i"} < set(lines)


@pytest.mark.parametrize("found", [ALL, MpiPrograms(pmix=False, mpirun=False)])
@pytest.mark.parametrize(
    "settings", [SMALL, Settings(gpus=0, gpu_type="off"), Settings(slurm_prefix="/opt/slurm")]
)
def test_profile_can_be_loaded(tmp_path: Path, settings: Settings, found: MpiPrograms) -> None:
    path = tmp_path / "lab.yaml"
    path.write_text(profile_text(settings, found, "24.11.5", "2026-11-01"))
    site = load_site(str(path)).value
    assert (site.name, site.slurm) == ("lab", "24.11.5")
    assert ("mpirun" in site.launchers.allowed) is found.mpirun
    assert ("mpirun" in site.launchers.forbidden) is not found.mpirun
    assert site.launchers.mpi == ("pmix" if found.pmix else None)
    assert [part.name for part in site.partitions] == ["gpu", "long"]
    assert {part.mem_per_node for part in site.partitions} == {settings.mem}
    assert {part.gpus_per_node for part in site.partitions} == {settings.gpus}
    assert set(site.env) == set(site.env_why)
    assert site.env["GLOO_SOCKET_IFNAME"] == "ib0"
    line = 'export PATH="/opt/slurm/bin:/opt/slurm/sbin:$PATH"'
    assert site.setup == ((line,) if settings.slurm_prefix else ())


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
