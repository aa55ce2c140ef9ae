"""What NCCL's lines add up to, in all their versions, cut and run together."""

from pathlib import Path

import pytest

from hpc_train.logs.line import Block
from hpc_train.nccl.transport import TransportReader, facts, transport_of
from tests.logs.nccl_lines import LOGS, channel, of_file, seen, tally


@pytest.mark.parametrize(
    ("tail", "kind"),
    [
        ("via P2P/direct pointer", "P2P/direct pointer"),
        ("via P2P/IPC/read", "P2P/IPC"),
        ("via P2P/IPC comm 0x5 nRanks 16", "P2P/IPC"),
        ("via P2P/CUMEM", "P2P/CUMEM"),
        ("via P2P/MNNVL", "P2P/MNNVL"),
        ("via P2P/indirect/3[1f000]/read", "P2P/indirect"),
        ("via direct shared memory", "SHM"),
        ("via SHM/direct/CE", "SHM"),
        ("[send] via NET/IB/0", "NET/IB"),
        ("[receive] via NET/IB/11(7)/GDRDMA(PCI)/Shared", "NET/IB/GDRDMA"),
        ("[send] via NET/IBext_v10/3/GDRDMA", "NET/IBext_v10/GDRDMA"),
        ("[send] via NET/AWS Libfabric/2(4)/GDRDMA", "NET/AWS Libfabric/GDRDMA"),
        ("[send] via NET/Socket/3", "NET/Socket"),
        ("[send] via NET/FasTrak/0", "NET/FasTrak"),
    ],
)
def test_kinds_of_channels(tail: str, kind: str) -> None:
    assert seen(channel(tail) * 3).channels == {kind: 3}


def test_oldest_version() -> None:
    found = of_file("old_2.4.log")
    assert found.nccl_version == ("2.4.8+cuda10.1",)
    assert (found.ranks, found.nodes, found.hosts) == (2, 2, ("a1", "a2"))
    assert found.between_nodes == found.channels == {"NET/Socket": 4}
    assert found.using_network == {"Socket": 2}
    assert found.interfaces == ("eth0",)
    assert found.verdict == "sockets"
    assert found.first["NET/Socket"] == "old_2.4.log:7"


def test_rccl() -> None:
    found = of_file("rccl_mixed.log")
    assert found.nccl_version == ("2.22.3-HEAD",)
    assert [f"{a.name} {a.link_layer}" for a in found.adapters] == [
        "rdma0:1 RoCE",
        "rdma1:1 RoCE",
        "rdma2:1 IB",
    ]
    assert found.channels == {"NET/IB/GDRDMA": 4, "NET/IB": 1}
    assert found.without_gdr == ("b1:NET/IB/2",)
    assert found.plugin_missing
    assert found.rccl


def test_plugin_of_newer_versions() -> None:
    found = of_file("efa_2.27.log")
    assert found.nccl_version == ("2.27.5+cuda12.9",)
    assert found.plugins == ("Libfabric",)
    assert (found.ofi_version, found.provider) == ("1.16.0", "efa")
    assert found.environment == {"NCCL_CROSS_NIC": "1", "NCCL_NET_GDR_LEVEL": "PHB"}
    assert (found.ranks, found.nodes) == (16, 2)
    assert found.verdict == "EFA+GDR"
    assert not found.findings


def test_line_of_another_rank_within_a_line() -> None:
    whole = channel("via P2P/IPC").strip()
    text = f"8 2 float sum {whole[:-7]}{whole}\n"
    text += "h1:1:2 [0] NCCL INFO Connected all ringsh2:1:3 [1] NCCL INFO Using network IB\n"
    text += "NCCL version 2.7.8+cuda10.2NCCL version 2.7.8+cuda10.2\n"
    found = seen(text)
    assert found.channels == {"P2P/IPC": 1}
    assert found.using_network == {"IB": 1}
    assert found.nccl_version == ("2.7.8+cuda10.2",)


def test_name_that_few_lines_begin_with_is_no_host() -> None:
    assert seen(channel("via P2P/IPC") * 5 + channel("via P2P/IPC", "cutnode7")).hosts == ("h1",)


def test_rank_numbers_of_other_communicators_do_not_mislead() -> None:
    """Ranks 0 and 1 sit on one node, and as ranks of a smaller communicator on two."""
    lines = [
        f"{host}:10:11 [0] NCCL INFO comm 0x1 rank {rank} nranks 4 cudaDev 0 busId {rank} - Init "
        "COMPLETE\n"
        for rank, host in enumerate(("h1", "h1", "h2", "h2"))
    ]
    head = "Channel 00/0 : 0[1b000] -> 1[1d000]"
    lines += [
        channel("[send] via NET/IB/0", "h1", head),
        channel("[receive] via NET/IB/0", "h2", head),
    ]
    assert seen("".join(lines)).between_nodes == {"NET/IB": 2}


def test_network_inside_a_node_is_not_between_nodes() -> None:
    lines = channel("[send] via NET/IB/0") + channel("[receive] via NET/IB/0")
    assert seen(lines * 3).between_nodes == {}


def test_nodes_that_share_a_name() -> None:
    stated = "h1:10:11 [0] NCCL INFO comm 0x1 rank 0 nRanks 2 nNodes 2 localRanks 1 localRank 0\n"
    lines = channel("[send] via NET/IB/0") + channel("[receive] via NET/IB/0")
    assert seen(stated + lines * 3).between_nodes == {"NET/IB": 6}


def test_log_of_one_of_several_nodes() -> None:
    found = seen(channel("[send] via NET/IB/0/GDRDMA") * 5)
    assert (found.nodes, found.between_nodes) == (None, {"NET/IB/GDRDMA": 5})


def test_files_of_a_run_add_up(tmp_path: Path) -> None:
    for rank, host in enumerate(("h1", "h2")):
        text = f"{host}:10:11 [0] NCCL INFO Using network IB\n" + 5 * channel(
            f"[{'receive' if rank else 'send'}] via NET/IB/0/GDRDMA", host
        )
        (tmp_path / f"nccl.{host}.10.log").write_text(text)
    found = transport_of(tmp_path, tmp_path)
    assert found is not None
    assert (found.hosts, found.nodes, found.using_network) == (("h1", "h2"), 2, {"IB": 2})
    assert found.channels == {"NET/IB/GDRDMA": 10}
    assert found.first["NET/IB/GDRDMA"] == "nccl.h1.10.log:2"


def test_log_without_nccl(tmp_path: Path) -> None:
    (tmp_path / "a.log").write_text("Using cache. mail via NET/IB\n: Using 3 files\nNET/Plugin\n")
    assert transport_of(tmp_path, tmp_path) is None


@pytest.mark.parametrize("cut", range(0, 120, 3))
def test_cut_lines_never_raise(cut: int) -> None:
    for name in ("old_2.4.log", "rccl_mixed.log", "efa_2.27.log"):
        for number, line in enumerate((LOGS / name).read_bytes().splitlines()):
            reader = TransportReader("log")
            for text in (line[:cut], line[cut:] + line[:cut] + b"\xff\x00" * 3 + line):
                reader.read_block(Block(bytearray(text), len(text)), number)
            facts(reader.tally)


def test_hostile_numbers() -> None:
    many = "9" * 400
    ready = "cudaDev 0 busId 0 - Init COMPLETE"
    text = (
        f"h:1:2 [0] NCCL INFO comm 0x1 rank {many} nranks {many} {ready}\n"
        f"h:1:2 [0] NCCL INFO Channel 00/0 : {many}[0] -> 1[0] [send] via NET/IB/{many}\n"
        f"NCCL version {many}.{many}\n"
    )
    found = facts(tally(text))
    assert found is None or found.ranks is None


def test_lines_that_are_alike_count_each() -> None:
    """Also those that differ in a channel's number, end in a carriage return, or have no end."""
    said = "h1:10:11 [0] NCCL INFO Using network IB\n"
    sent = channel("[send] via NET/IB/0/GDRDMA")
    other = sent.replace("00/0", "01/0").replace("\n", "\r\n")
    noise = "noise\n" * 300_000
    found = seen("\n" + noise + said * 3 + sent + other + noise + said + sent[:-1])
    assert found.using_network == {"IB": 4}
    assert found.channels == {"NET/IB/GDRDMA": 3}
    assert found.first["network"] == "log:300002"
    assert found.first["NET/IB/GDRDMA"] == "log:300005"
