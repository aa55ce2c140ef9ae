"""What a machine's tools print -> Hardware, the order of its GPUs, and a guess at its fabric."""

import pytest

from hpc_train.machine.hardware import gpu_order, guess
from hpc_train.machine.read_hardware import links, read_hardware
from hpc_train.machine.read_topology import nvidia_topology, rocm_gpus, rocm_topology
from hpc_train.plans.binding import nearest_nics
from tests.machine.machines import fixture, output


@pytest.mark.parametrize(
    ("shape", "count", "order"),
    [
        ("dgx_a100", 8, (2, 3, 0, 1, 6, 7, 4, 5)),
        ("gh200", 4, ()),
        ("a100_reversed", 4, (3, 2, 1, 0)),
        ("ls6", 3, ()),
        ("mi250x", 8, (4, 5, 2, 3, 6, 7, 0, 1)),
    ],
)
def test_gpus_and_their_order(shape: str, count: int, order: tuple[int, ...]) -> None:
    found = read_hardware(output(shape))
    assert [gpu.index for gpu in found.gpus] == list(range(count))
    assert gpu_order(found) == order
    assert found.unread == ()


def test_a_dgx_and_its_adapters() -> None:
    found = read_hardware(output("dgx_a100"))
    assert found.gpus[0].name == "NVIDIA A100-SXM4-40GB"
    assert found.gpus[0].memory_mib == 40960
    assert nearest_nics(found.topology.gpus[2]) == ("mlx5_2", "mlx5_3")
    assert nearest_nics(found.topology.gpus[7]) == ("mlx5_8", "mlx5_9")
    cpu = found.processor
    assert cpu is not None
    assert (cpu.cpus, cpu.sockets, cpu.cores_per_socket, cpu.threads_per_core) == (256, 2, 64, 2)
    assert (len(found.topology.numa), found.topology.numa[3].cpus) == (8, "48-63,176-191")
    network = guess(found)
    assert network.fabric == "infiniband"
    # mlx5_4 is down, mlx5_5 is Ethernet for the storage.
    assert network.hcas == tuple(f"mlx5_{n}" for n in (0, 1, 2, 3, 6, 7, 8, 9))
    assert (network.interfaces, network.others, network.gbps) == (("ib0",), ("enp226s0",), 200)


def test_a_table_with_a_legend_of_nics_and_memory_nodes() -> None:
    found = nvidia_topology(fixture("gh200.topology"))
    assert [(one.gpu, one.numa, int(one.cpus.partition("-")[0])) for one in found] == [
        (0, 0, 0),
        (1, 1, 72),
        (2, 2, 144),
        (3, 3, 216),
    ]
    assert nearest_nics(found[2]) == ("hsi2",)


def test_rocm_says_the_names_and_the_places_of_gpus() -> None:
    text = fixture("mi250x.rocm")
    assert [one.numa for one in rocm_topology(text)] == [3, 3, 1, 1, 0, 0, 2, 2]
    assert {one.name for one in rocm_gpus(text)} == {"AMD INSTINCT MI250X (MCM) OAM AC MBA"}
    (gpu,) = rocm_gpus('{"card1": {"Card Series": "AMD Instinct MI300X"}}')
    assert (gpu.index, gpu.name) == (1, "AMD Instinct MI300X")


@pytest.mark.parametrize(("name", "fabric"), [("roce", "roce"), ("efa", "efa")])
def test_other_adapters(name: str, fabric: str) -> None:
    found = guess(read_hardware(output("ls6", ports=fixture(f"{name}.ports"))))
    assert found.fabric == fabric
    assert found.hcas == (("mlx5_0", "mlx5_1") if fabric == "roce" else ())


@pytest.mark.parametrize(("flags", "up"), [('"UP"', True), ("", False)])
def test_a_state_that_the_driver_does_not_know(flags: str, up: bool) -> None:
    text = f'[{{"ifname": "ib0", "operstate": "UNKNOWN", "flags": [{flags}]}}]'
    assert [one.up for one in links(text, "")] == [up]
