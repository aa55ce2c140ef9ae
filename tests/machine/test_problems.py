"""What is wrong with a machine or its Slurm, and nothing where nothing is."""

from typing import Any

import msgspec
import pytest

from hpc_train.machine.doctor import advise
from hpc_train.machine.hardware import Hardware, Link, Port, ProcessLimits, Software, Torch
from hpc_train.machine.read_hardware import read_hardware
from hpc_train.slurm.live_cluster import read_cluster
from tests.machine.machines import Slurm, output

GOOD = ProcessLimits(memlock_kib=-1, open_files=65536, shm_mib=64000, memory_mib=128000)
CPU_TORCH = Torch(version="2.9", backends=("gloo",))


def machine(**change: Any) -> Hardware:
    found = read_hardware(output("gh200"))
    link = Link(name="eth0", up=True, kind="ethernet", addresses=("10.0.0.1",))
    whole = msgspec.structs.replace(found, links=(link,), limits=GOOD)
    return msgspec.structs.replace(whole, **change)


def port(*, active: bool, name: str = "mlx5_0") -> Port:
    return Port(adapter=name, number=1, active=active, gbps=200, layer="InfiniBand")


def limits(**change: Any) -> ProcessLimits:
    return msgspec.structs.replace(GOOD, **change)


def test_a_good_machine_needs_no_advice() -> None:
    assert advise(machine(ports=(port(active=True),)), None) == ()


@pytest.mark.parametrize(
    ("change", "severity", "words"),
    [
        (
            {"ports": (port(active=True),), "limits": limits(memlock_kib=64)},
            "error",
            "ulimit -l is 64 KiB",
        ),
        ({"limits": limits(shm_mib=64)}, "warning", "64 MiB in /dev/shm"),
        ({"limits": limits(open_files=1024)}, "info", "ulimit -n is 1024"),
        ({"ports": (port(active=False),)}, "error", "no active port: mlx5_0"),
        (
            {"ports": (port(active=True), port(active=False, name="mlx5_1"))},
            "warning",
            "no active port: mlx5_1",
        ),
        (
            {"links": (*machine().links, Link(name="ib0", up=False, kind="infiniband"))},
            "warning",
            "down: ib0",
        ),
        (
            {"links": (Link(name="lo", up=True, kind="loopback"),)},
            "warning",
            "no interface to other machines is up",
        ),
        ({"software": Software(torch=CPU_TORCH)}, "error", "built for CPUs only"),
    ],
)
def test_each_fault_is_named_once(change: dict[str, Any], severity: str, words: str) -> None:
    (found,) = advise(machine(**change), None)
    assert found.severity == severity
    assert words in found.message
    assert found.advice


def test_open_mpi_without_slurm_matters_where_slurm_is() -> None:
    software = Software(mpirun="4.1.6", mpirun_knows_slurm=False)
    assert advise(machine(software=software), None) == ()
    (found,) = advise(machine(software=software), read_cluster(Slurm("lab")))
    assert "has no Slurm support" in found.message


def test_slurm_without_pmix_or_with_a_broken_one() -> None:
    live = read_cluster(Slurm("lab"))
    lacks = msgspec.structs.replace(live.mpi, plugins=("none", "pmi2"))
    (found,) = advise(machine(), msgspec.structs.replace(live, mpi=lacks))
    assert (found.severity, "no working PMIx" in found.message) == ("info", True)
    broken = msgspec.structs.replace(live.mpi, broken=("pmix",))
    first, _ = advise(machine(), msgspec.structs.replace(live, mpi=broken))
    assert "lists pmix, but cannot load it" in first.message


def test_a_partition_that_is_down() -> None:
    (found,) = [a for a in advise(machine(), read_cluster(Slurm("mixed"))) if a.id == "slurm"]
    assert found.message == "not up: cpu"
