"""Interfaces and adapters of a machine -> its network, with the fastest of equal ones."""

from typing import Any

import msgspec
import pytest

from hpc_train.machine.hardware import Gpu, Hardware, Link, Port, gpu_order, guess, usable
from hpc_train.plans.binding import GpuPlace, NodeTopology, NumaNode


def link(name: str, **fields: Any) -> Link:
    values = {"up": True, "kind": "ethernet", "addresses": ("10.0.0.1",), **fields}
    return Link(name=name, **values)


def port(adapter: str, layer: Any = "InfiniBand", **fields: Any) -> Port:
    values = {"number": 1, "active": True, "gbps": 200, **fields}
    return Port(adapter=adapter, layer=layer, **values)


def machine(*links: Link, ports: tuple[Port, ...] = (), **fields: Any) -> Hardware:
    return Hardware(host="n1", links=links, ports=ports, **fields)


@pytest.mark.parametrize(
    ("changes", "is_usable"),
    [
        ({}, True),
        ({"up": False}, False),
        ({"virtual": True}, False),
        ({"kind": "loopback"}, False),
        ({"addresses": ()}, False),
        ({"addresses": ("fe80::1%eth0",)}, False),
        ({"addresses": ("127.0.0.1",)}, False),
        ({"addresses": ("fe80::1%eth0", "10.0.0.2")}, True),
        ({"addresses": ("?",)}, False),
    ],
)
def test_an_interface_is_up_physical_and_has_an_address(
    changes: dict[str, Any], *, is_usable: bool
) -> None:
    assert (link("a", **changes) in usable(machine(link("a", **changes), link("b")))) is is_usable


@pytest.mark.parametrize(
    ("names", "ports", "network"),
    [
        ([], [], (None, (), (), None)),
        (["eth0"], [], ("ethernet", ("eth0",), (), None)),
        (["eth0", "hsn1", "hsn0"], [port("m0")], ("slingshot", ("hsn1", "hsn0"), (), None)),
        (["eth0"], [port("m0"), port("e", driver="efa")], ("efa", ("eth0",), (), None)),
        (
            ["eth0", "ibs1"],
            [port("m0"), port("m1", gbps=100), port("m0", number=2)],
            ("infiniband", ("ibs1",), ("m0", "m1"), 100),
        ),
        (["eth0"], [port("m0", "Ethernet", gbps=400)], ("roce", ("eth0",), ("m0",), 400)),
        (["eth0"], [port("m0", active=False)], ("ethernet", ("eth0",), (), None)),
        (
            ["eth0"],
            [port("m0", "Ethernet"), port("m1", gbps=100)],
            ("infiniband", ("eth0",), ("m1",), 100),
        ),
    ],
)
def test_the_fabric_and_what_belongs_to_it(
    names: list[str], ports: list[Port], network: tuple[Any, ...]
) -> None:
    found = guess(machine(*map(link, names), ports=tuple(ports)))
    assert (found.fabric, found.interfaces, found.hcas, found.gbps) == network
    assert found.others == tuple(name for name in names if name not in network[1])


def test_the_interface_of_infiniband_and_then_the_fastest_is_chosen() -> None:
    slow, fast, unknown = link("a", mbps=1000), link("b", mbps=25000), link("c")
    found = guess(machine(unknown, slow, fast))
    assert (found.interfaces, found.gbps, found.others) == (("b",), 25, ("c", "a"))
    over_ib = link("d", kind="infiniband", mbps=1000)
    assert guess(machine(fast, over_ib)).interfaces == ("d",)
    several = guess(machine(link("hsn0", mbps=200_000), link("hsn1", mbps=100_000)))
    assert several.gbps == 100


def cores(*first: int | None) -> Hardware:
    gpus = tuple(Gpu(index=number, name="x") for number in range(len(first)))
    places = tuple(
        GpuPlace(gpu=gpu, numa=gpu, cpus="" if core is None else str(core))
        for gpu, core in enumerate(first)
    )
    return Hardware(host="n1", gpus=gpus, topology=NodeTopology(gpus=places))


def test_the_order_of_gpus_is_that_of_their_cores_if_all_are_known() -> None:
    assert gpu_order(cores(32, 0, 16)) == (1, 2, 0)
    assert gpu_order(cores(0, 16, 32)) == ()
    assert gpu_order(cores(0, 0)) == ()
    assert gpu_order(cores(16, 16, 0)) == (2, 0, 1)
    assert gpu_order(cores(16, None, 0)) == ()
    nodes = tuple(NumaNode(number=n, cpus=cpus) for n, cpus in enumerate(("24-31", "8", "0")))
    bare = cores(None, None)
    topology = msgspec.structs.replace(bare.topology, numa=nodes)
    found = msgspec.structs.replace(bare, topology=topology)
    assert gpu_order(found) == (1, 0)


def test_addresses_that_no_tool_reported_are_not_required() -> None:
    assert usable(machine(link("a", addresses=()))) == (link("a", addresses=()),)
