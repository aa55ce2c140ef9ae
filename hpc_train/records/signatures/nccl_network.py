"""Signatures of NCCL and RCCL that speak of the network: cards, interfaces, peers."""

from __future__ import annotations

import re

from hpc_train.records.signatures.base import Signature

_NCCL = ("https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/troubleshooting.html",)
_ENV = ("https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html",)

NCCL_NETWORK = (
    Signature(
        id="nccl_retry_exceeded",
        group="nccl",
        severity="fatal",
        literals=(b"NET/IB : Got completion", b"NET/IB: Got completion"),
        pattern=re.compile(
            r"Got completion (?:from peer (?P<peer>\S{1,80}) )?with (?:error|status=)\w{0,40}?"
            r" ?\(?12\b"
        ),
        title="A message over InfiniBand or RoCE was never answered (status 12)",
        cause="The peer is dead, or a cable, a switch or the RoCE settings are at fault: at once"
        " means a wrong GID or mixed link layers, after hours a link or a node.",
        advice="Look for the first error of the peer; RoCE: NCCL_IB_GID_INDEX and NCCL_IB_TC;"
        " NCCL_IB_HCA to leave NICs out; `ibqueryerrors`; NCCL_IB_TIMEOUT=22 for short stops.",
        example="n1:811:902 [0] net_ib.cc:1300 NCCL WARN NET/IB : Got completion from peer"
        " 10.0.0.2<4791> with error 12, opcode 0, len 0, vendor err 129",
        sources=_ENV,
    ),
    Signature(
        id="nccl_completion_error",
        group="nccl",
        severity="fatal",
        role="consequence",
        literals=(b"NET/IB : Got completion", b"NET/IB: Got completion"),
        pattern=re.compile(
            r"Got completion (?:from peer (?P<peer>\S{1,80}) )?with (?:error |status=)"
            r"(?P<status>[\w()]{1,40})"
        ),
        title="A transfer over InfiniBand failed (status {status})",
        cause="5 follows an earlier error on the same connection; 4, 9 and 10 are memory that"
        " is not registered (IOMMU, peer memory).",
        advice="Look for the first network error of all ranks; on virtual machines: ACS and IOMMU.",
        example="n1:811:902 [0] net_ib.cc:1300 NCCL WARN NET/IB : Got completion from peer"
        " 10.0.0.2<4791> with status=5 opcode=129 len=0 vendor err 249",
        sources=_NCCL,
    ),
    Signature(
        id="nccl_ib_async_event",
        group="nccl",
        severity="warning",
        literals=(b"Got async event", b"async fatal event"),
        pattern=re.compile(
            r"Got async (?:error )?event ?: (?P<event>[^\n]{1,60})|async fatal event"
            r"(?: on (?P<object>QP|CQ|SRQ))?|Got non-fatal async event"
        ),
        title="A network card reported an event while the job ran",
        cause="`port error` is a link that went down; `GID table changed` a change of addresses.",
        advice="Compare the time with the first failure; `ibqueryerrors`, dmesg, the cable.",
        example="n1:811:902 [0] net_ib.cc:94 NCCL WARN NET/IB : mlx5_0:1 Got async event : port"
        " error",
        sources=_NCCL,
    ),
    Signature(
        id="nccl_ib_device",
        group="nccl",
        severity="warning",
        literals=(b"Unable to open device mlx", b"Call to ibv_open_device failed"),
        pattern=re.compile(
            r"Unable to open device (?P<device>\w{1,20})|Call to ibv_open_device failed"
        ),
        title="NCCL may not use a network card of the node",
        cause="/dev/infiniband is not in the container, or not readable.",
        advice="Give the devices to the container (`--device /dev/infiniband`, enroot's hooks).",
        example="n1:811:902 [0] net_ib.cc:160 NCCL WARN NET/IB : Unable to open device mlx5_3",
        sources=_NCCL,
    ),
    Signature(
        id="nccl_ib_unreachable",
        group="nccl",
        severity="fatal",
        literals=(b"Call to ibv_modify_qp",),
        pattern=re.compile(
            r"Call to ibv_modify_qp failed with (?:error )?(?:\d{1,4} )?"
            r"(?P<why>Connection timed out|Network is unreachable|No route to host)"
            r"(?:,? (?:errno \d{1,4}|on dev (?P<device>[\w:]{1,30})))?"
        ),
        title="Two network cards could not reach one another over RDMA: {why}",
        cause="Cards of different rails or subnets were paired, or the addresses of RoCE (GID) are"
        " wrong.",
        advice="NCCL_CROSS_NIC=0; NCCL_IB_GID_INDEX; NCCL_IB_HCA with the cards that are cabled;"
        " test the pair with ib_write_bw.",
        example="n1:811:902 [0] ibvwrap.c:262 NCCL WARN Call to ibv_modify_qp failed with 110"
        " Connection timed out, on dev mlx5_1:1, curr state INIT, next state RTR",
        sources=_ENV,
    ),
    Signature(
        id="nccl_ofi_error",
        group="nccl",
        severity="fatal",
        literals=(b"NCCL WARN NET/OFI ",),
        pattern=re.compile(
            r"NCCL WARN NET/OFI (?P<text>Request \S{1,40} completed with error[^\n{]{0,120}"
            r"|Couldn't open [^\n]{1,120}|Creating new [^\n]{1,80} failed[^\n]{0,80})"
        ),
        title="A transfer over libfabric (EFA, Slingshot) failed: {text}",
        cause="At the start: the plug-in and libfabric do not fit the card, or the security group"
        " closes the way. Later: the other node or the link died.",
        advice="Look for the first error of the other ranks; `fi_info -p efa` or `-p cxi` on each"
        " node; FI_LOG_LEVEL=warn; the versions of plug-in, libfabric and NCCL together.",
        example="n1:811:902 [0] ofi_process_cq:1033 NCCL WARN NET/OFI Request 0x7f9 completed with"
        " error. RC: 21. Error: unknown error.",
        sources=_NCCL,
    ),
    Signature(
        id="nccl_ib_memory",
        group="nccl",
        severity="fatal",
        literals=(b"Call to ibv_reg_mr", b"Call to ibv_create_", b"Call to ibv_modify_qp"),
        pattern=re.compile(
            r"Call to (?P<call>ibv_\w{1,40}) failed(?: with error (?P<why>[^\n]{1,80}))?"
        ),
        title="NCCL could not set up InfiniBand: {call} failed",
        cause="The limit of locked memory (`Cannot allocate memory`), the driver of the GPU's"
        " memory (nvidia_peermem), or addresses of RoCE (`Connection timed out`,"
        " ibv_modify_qp).",
        advice="`ulimit -l` must be unlimited in the job; NCCL_IB_GID_INDEX; ask the site.",
        example="n1:811:902 [0] ibvwrap.cc:130 NCCL WARN Call to ibv_reg_mr failed with error"
        " Cannot allocate memory",
        sources=_NCCL,
    ),
    Signature(
        id="nccl_no_interface",
        group="nccl",
        severity="fatal",
        literals=(b"no socket interface found", b"no device found matching"),
        pattern=re.compile(
            r"[Nn]o socket interface found|no device found matching (?P<interface>\S{1,60})"
        ),
        title="NCCL finds no network interface of the name that it was told",
        cause="NCCL_SOCKET_IFNAME names an interface that this node does not have.",
        advice="`ip -br addr` on each node; a prefix (`ib`, `^lo,docker`) instead of one name.",
        example="n1:811:902 [0] bootstrap.cc:45 NCCL WARN Bootstrap : no socket interface found",
        sources=_ENV,
    ),
    Signature(
        id="nccl_cannot_connect",
        group="nccl",
        severity="fatal",
        literals=(
            b"socketStartConnect: ",
            b"socketPollConnect: ",
            b"socketPollConnect ",
            b"Call to connect failed",
            b"Net : Connect to ",
            b"Call to connect ",
            b"exceeded error retry count",
        ),
        pattern=re.compile(
            r"(?:Connect to|connect to|Call to connect) ?(?P<peer>(?!failed)\S{1,100})? ?(?:failed|"
            r"returned|timeout)[^\n]{0,60}?(?P<why>No route to host|Connection refused|"
            r"Connection timed out|Network is unreachable|exceeded error retry count)"
            r"|exceeded error retry count|socketPollConnect:? [^\n]{0,120}?(?:returned|failed)"
        ),
        title="NCCL could not connect to another rank",
        cause="It chose an interface that the others cannot reach (docker0, virbr0, lo), a firewall"
        " is between, or the other rank has died.",
        advice="NCCL_SOCKET_IFNAME = the interface between nodes; look for an earlier error.",
        example="n1:811:902 [0] socket.cc:480 NCCL WARN socketStartConnect: Connect to"
        " 172.17.0.1<51234> failed : No route to host",
        sources=_ENV,
    ),
    Signature(
        id="nccl_peer_closed",
        group="nccl",
        severity="warning",
        role="consequence",
        literals=(b"Connection closed by remote peer", b"remote process exited or there was"),
        pattern=re.compile(
            r"Connection closed by remote peer(?: (?P<peer>\S{1,80}))?"
            r"|remote process exited or there"
        ),
        title="NCCL lost the connection to another rank",
        cause="The other rank ended: it failed before, or the job was done.",
        advice="Look for the rank that failed first.",
        example="n1:811:902 [0] socket.cc:50 NCCL WARN socketProgress: Connection closed by remote"
        " peer n2<43210>",
        sources=_NCCL,
    ),
    Signature(
        id="nccl_no_network",
        group="nccl",
        severity="fatal",
        literals=(b"Failed to initialize any NET plugin",),
        pattern=re.compile(r"Failed to initialize any NET plugin"),
        title="NCCL is left without any network",
        cause="NCCL_NET, NCCL_NET_PLUGIN and NCCL_IB_DISABLE leave nothing that works here.",
        advice="Unset them; then set back one by one what the site needs.",
        example="n1:811:902 [0] plugin/net.cc:310 NCCL WARN Failed to initialize any NET plugin",
        sources=_ENV,
    ),
    Signature(
        id="nccl_virtual_nics",
        group="nccl",
        severity="fatal",
        literals=(b"Requested properties for vNic",),
        pattern=re.compile(r"Requested properties for vNic (?P<number>\d{1,4})"),
        title="NCCL asks for a merged network card that it did not make",
        cause="A fault of NCCL 2.25 and older with merged NICs when a communicator is made again.",
        advice="NCCL_IB_MERGE_NICS=0, or a newer NCCL.",
        example="NET/IB : Requested properties for vNic 4, only 4 vNics have been created",
        sources=_ENV,
    ),
)
