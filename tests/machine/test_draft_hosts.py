"""The draft of a profile of machines by ssh: loads, and names what the hosts have in common."""

from pathlib import Path

import pytest

from hpc_train.base.errors import ProbeError
from hpc_train.machine.init_site import HostFacts, common_addresses, draft_hosts, read_facts
from hpc_train.sites.load import load_site

GPU1 = HostFacts(
    name="gpu1",
    cpus=16,
    arch="x86_64",
    gpus=("NVIDIA A100",) * 2,
    addresses=("93.184.216.34/24", "10.0.0.11/24"),
)
GPU2 = HostFacts(
    name="gpu2",
    cpus=8,
    arch="x86_64",
    gpus=("NVIDIA A100",) * 2,
    addresses=("203.0.113.9/24", "10.0.0.12/24"),
)


def test_the_draft_loads_with_the_network_that_all_have(tmp_path: Path) -> None:
    path = tmp_path / "lab2.yaml"
    path.write_text(draft_hosts("lab2", "2026-11-27", [GPU1, GPU2]))
    site = load_site(str(path)).value
    assert [(host.name, host.address, host.gpus) for host in site.hosts] == [
        ("gpu1", "10.0.0.11", 2),
        ("gpu2", "10.0.0.12", 2),
    ]
    (partition,) = site.partitions
    assert (partition.cpus_per_node, partition.gpus_per_node, partition.max_nodes) == (8, 2, 2)
    assert partition.gpu_model == "NVIDIA A100"
    assert not site.shared


def test_without_a_common_network_the_address_is_a_question(tmp_path: Path) -> None:
    alone = HostFacts(name="gpu2", cpus=8, arch="x86_64", gpus=GPU1.gpus)
    text = draft_hosts("lab2", "2026-11-27", [GPU1, alone])
    assert "- {name: gpu2, gpus: 2}  # guessed: the ranks use its name" in text
    (tmp_path / "lab2.yaml").write_text(text)
    assert [host.reached for host in load_site(str(tmp_path / "lab2.yaml")).value.hosts] == [
        "gpu1",
        "gpu2",
    ]


def test_an_address_that_two_hosts_have_is_not_theirs() -> None:
    bridge = ("192.168.122.1/24", "10.0.0.11/24")
    other = ("192.168.122.1/24", "10.0.0.12/24")
    hosts = [
        HostFacts(name=name, cpus=1, arch="", addresses=own)
        for name, own in (("gpu1", bridge), ("gpu2", other))
    ]
    assert common_addresses(hosts) == {"gpu1": "10.0.0.11", "gpu2": "10.0.0.12"}


def test_machines_of_different_kinds_get_a_profile_each() -> None:
    small = HostFacts(name="gpu3", cpus=8, arch="x86_64")
    with pytest.raises(ProbeError, match="gpu3 has 0 GPUs and gpu1 has 2"):
        draft_hosts("lab2", "2026-11-27", [GPU1, small])


def test_the_facts_of_an_answer() -> None:
    lines = (
        ("hostname", "a"),
        ("cpus", "16"),
        ("memory", "64000"),
        ("arch", "x86_64"),
        ("gpu", "NVIDIA A100"),
        ("gpu", "NVIDIA A100"),
        ("address", "93.184.216.34/24 eth0"),
        ("address", "10.0.0.11/24 ib0"),
    )
    assert read_facts("gpu1", lines, shared=False) == GPU1
