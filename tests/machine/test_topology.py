"""The topology of published machines, and of this one.

Sources of the facts, each as its tools printed it:
- dgx_a100: github.com/NVIDIA/nccl issue 1505 (GPUs on NUMA nodes 3, 1, 7, 5)
- dgx_h100: github.com/sgl-project/sglang issue 16771, github.com/vllm-project/vllm issue 6746
- mi250x: github.com/vllm-project/vllm issue 16840, cores github.com/openmm/openmm issue 3940, NUMA
  nodes of the GPUs docs.lumi-supercomputer.eu, "Distribution and binding"
"""

from hpc_train.machine.read_hardware import read_hardware
from hpc_train.machine.read_topology import nvidia_topology
from hpc_train.plans.binding import NodeTopology, nearest_nics
from tests.machine.machines import fixture, output

NODE = "/sys/devices/system/node/node{}/cpulist:{}\n"


def topology(shape: str, **more: str) -> NodeTopology:
    return read_hardware(output(shape, **more)).topology


def test_a_dgx_h100() -> None:
    found = topology(
        "dgx_h100",
        numa=NODE.format(0, "0-55,112-167") + NODE.format(1, "56-111,168-223"),
    )
    assert [place.numa for place in found.gpus] == [0] * 4 + [1] * 4
    nearest = [nearest_nics(place) for place in found.gpus]
    assert nearest == [(f"mlx5_{number}",) for number in (0, 3, 4, 5, 6, 9, 10, 11)]
    assert [node.number for node in found.numa] == [0, 1]
    assert found.gpus[4].cpus == "56-111,168-223"


def test_a_matrix_that_is_cut_off() -> None:
    text = fixture("dgx_h100.topology")
    lines = text.splitlines()
    found = nvidia_topology("\n".join((*lines[:3], lines[3][:40])))
    assert [place.gpu for place in found] == [0, 1]
    assert nvidia_topology("No devices were found\n") == ()
