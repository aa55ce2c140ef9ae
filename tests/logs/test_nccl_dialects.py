"""Words that only some versions of NCCL, RCCL and their plug-ins use."""

from hpc_train.nccl.transport import verdict
from tests.logs.nccl_lines import channel, seen


def test_chunk_size_that_somebody_set_says_nothing_of_nvlink() -> None:
    size = "h1:10:11 [0] NCCL INFO P2P Chunksize set to 524288\n"
    assert seen(size).nvlink
    asked = "h1:10:11 [0] NCCL INFO NCCL_P2P_NET_CHUNKSIZE set by environment to 524288.\n"
    assert not seen(asked + size).nvlink
    one = "h1:10:11 [0] NCCL INFO comm 0x6 rank 0 nRanks 2 nNodes 1 localRanks 2 localRank 0\n"
    assert seen(asked + one + size).nvlink


def test_links_of_amd_gpus() -> None:
    text = (
        "h1:10:11 [0] NCCL INFO RCCL version : 2.30.4-HEAD:0123456\n"
        "h1:10:11 [0] NCCL INFO         + XGMI[24.0] - DEV/0-b000\n"
    ) + channel("via P2P/direct pointer comm 0x5 nRanks 04")
    assert verdict(seen(text)).verdict == "xGMI"
    other = "RCCL version : 2.28.3-gfx1151-rccl:a188cf2\n"
    assert seen(other).nccl_version == ("2.28.3-gfx1151-rccl",)


def test_words_of_nccl_2_3() -> None:
    found = seen(
        "h1:10:10 [0] NCCL INFO NET/IB: [0] mlx5_1:1/IB\n"
        "h1:10:10 [0] NCCL INFO NET/IB: [1] mlx5_3:1/RoCE\n"
        "h1:10:10 [0] NCCL INFO Using internal Network IB\n"
        "h1:10:10 [0] NCCL INFO comm 0x7f5e rank 6 nranks 8\n"
    )
    assert found.using_network == {"IB": 1}
    assert [(one.name, one.link_layer) for one in found.adapters] == [
        ("mlx5_1:1", "IB"), ("mlx5_3:1", "RoCE"),
    ]  # fmt: skip


def test_network_with_a_version_in_its_name() -> None:
    found = seen(
        "h1:10:11 [0] NCCL INFO NET/Plugin: Loaded net plugin NCCL RDMA Plugin v10 (v10)\n"
        "h1:10:11 [0] NCCL INFO Using network NCCL RDMA Plugin v10\n"
        + channel("[send] via NET/NCCL RDMA Plugin v10/0/GDRDMA")
    )
    assert found.plugins == ("NCCL RDMA Plugin v10",)
    assert found.using_network == {"NCCL RDMA Plugin v10": 1}
    assert verdict(found).verdict == "IB+GDR"


def test_plugin_that_gives_up_gpudirect() -> None:
    text = (
        "h1:10:11 [0] NCCL INFO NET/OFI Selected provider is efa, fabric is efa (found 1 nics)\n"
        "h1:10:11 [0] NCCL INFO NET/OFI Need to force simple protocol: GDR not supported\n"
    ) + channel("[send] via NET/Libfabric/0", head="Channel 00/0 : 0[0] -> 1[0]")
    (finding,) = verdict(seen(text)).findings
    assert finding.id == "nccl_no_gpudirect"
    assert "log:2" in finding.evidence
    assert finding.advice.startswith("the plug-in reports no GPUDirect")
