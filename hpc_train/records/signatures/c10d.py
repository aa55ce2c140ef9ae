"""Signatures of torch.distributed: the store, the start of a process group, the watchdog."""

from __future__ import annotations

import re

from hpc_train.records.signatures.base import Signature

_C10D = ("https://pytorch.org/docs/stable/distributed.html",)
_ENVIRONMENT = ("https://pytorch.org/docs/stable/torch_nccl_environment_variables.html",)
_WATCHDOG = "A rank did not come to this operation, or the network stands still."

C10D = (
    Signature(
        id="nccl_watchdog_timeout",
        group="c10d",
        severity="fatal",
        literals=(b"Watchdog caught collective operation timeout",),
        pattern=re.compile(
            r"(?:\[Rank (?P<rank>\d{1,7})\] )?Watchdog caught collective operation timeout: "
            r"WorkNCCL\(SeqNum=(?P<seq>\d{1,18}), OpType=(?P<op>\w{1,40})[^\n]{0,200}?"
            r"Timeout\(ms\)=(?P<timeout_ms>\d{1,12})\)"
        ),
        title="{op} number {seq} was not done within {timeout_ms} ms, says the watchdog{of_rank}",
        cause=f"{_WATCHDOG} The rank that is silent, or has the smallest number, is the one to look"
        " at; unequal operations at one number are unequal code paths.",
        advice="Read what the silent rank did last. At the start: network (transport findings,"
        " NCCL_DEBUG=INFO). Later: slow files or an evaluation on one rank; TORCH_NCCL_TRACE_BUFFER_"
        "SIZE=2000 and TORCH_NCCL_DUMP_ON_TIMEOUT=1 record the operations; a longer timeout in"
        " init_process_group.",
        example="[E131 12:00:00.1 ProcessGroupNCCL.cpp:757] [Rank 3] Watchdog caught collective"
        " operation timeout: WorkNCCL(SeqNum=7, OpType=ALLREDUCE, NumelIn=1, NumelOut=1,"
        " Timeout(ms)=600000) ran for 600010 milliseconds before timing out.",
        sources=_ENVIRONMENT,
    ),
    Signature(
        id="nccl_watchdog_status",
        group="c10d",
        severity="info",
        role="consequence",
        literals=(
            b"detected by watchdog at work",
            b"ast enqueued NCCL work",
            b"last enqueued work",
        ),
        pattern=re.compile(
            r"(?:Rank (?P<rank>\d{1,7})\][^\n]{0,600}?)?last enqueued (?:NCCL )?work: "
            r"(?P<enqueued>-?\d{1,18})[^\n]{0,120}?last completed (?:NCCL )?work: "
            r"(?P<completed>-?\d{1,18})",
            re.IGNORECASE,
        ),
        title="A rank{of_rank} had asked for operations up to {enqueued}, done up to {completed}",
        cause="Compare the ranks: the smallest number belongs to the one that lags.",
        advice="Look at the rank with the smallest number.",
        example="[PG ID 0 PG GUID 0(default_pg) Rank 3] Exception (either an error or timeout)"
        " detected by watchdog at work: 7, last enqueued NCCL work: 9, last completed NCCL work: 6.",
        sources=_ENVIRONMENT,
    ),
    Signature(
        id="nccl_watchdog_exception",
        group="c10d",
        severity="fatal",
        literals=(b"watchdog thread terminated with exception",),
        pattern=re.compile(
            r"(?:Rank (?P<rank>\d{1,7})\] )?(?:Process group |NCCL )watchdog thread terminated with"
            r" exception: (?P<text>[^\n]{1,200})"
        ),
        title="The watchdog{of_rank} met an error: {text}",
        cause="The error that it names; an error of CUDA there is no matter of NCCL.",
        advice="Look for the first error of this rank.",
        example="[PG 0 Rank 3] Process group watchdog thread terminated with exception: NCCL error:"
        " remote process exited",
        sources=_ENVIRONMENT,
    ),
    Signature(
        id="c10d_heartbeat",
        group="c10d",
        severity="fatal",
        literals=(b"HeartbeatMonitor", b"watchdog got stuck", b"watchdog thread's heartbeat"),
        pattern=re.compile(
            r"(?:Rank (?P<rank>\d{1,7})\] )?[^\n]{0,200}?(?:watchdog got stuck for"
            r"|HeartbeatMonitor|watchdog thread's heartbeat|[Nn]o heartbeat)"
        ),
        title="The watchdog thread{of_rank} itself stood still",
        cause="Something holds Python's lock (GIL) or a call into the driver hangs.",
        advice="`py-spy dump --pid` on the node; TORCH_NCCL_DUMP_ON_TIMEOUT=1 writes what ran;"
        " TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC for slow starts.",
        example="[Rank 3] ProcessGroupNCCL's watchdog got stuck for 480 seconds without making"
        " progress",
        sources=_ENVIRONMENT,
    ),
    Signature(
        id="nccl_watchdog_aborts",
        group="c10d",
        severity="fatal",
        role="consequence",
        literals=(
            b"Some NCCL operations have failed or timed out",
            b"we are taking the entire process down",
            b"instance of 'c10::DistBackendError'",
        ),
        pattern=re.compile(
            r"(?:\[Rank (?P<rank>\d{1,7})\] )?(?:Some NCCL operations have failed or timed out"
            r"|To avoid data inconsistency, we are taking the entire process down)"
            r"|instance of 'c10::DistBackendError'"
        ),
        title="PyTorch ends the process{of_rank} after a failed operation of NCCL",
        cause="A timeout or an error of NCCL just before.",
        advice="Read the watchdog's or NCCL's line before this one.",
        example="[Rank 3] To avoid data inconsistency, we are taking the entire process down.",
        sources=_ENVIRONMENT,
    ),
    Signature(
        id="nccl_communicator_aborted",
        group="c10d",
        severity="fatal",
        role="consequence",
        literals=(b"NCCL communicator was aborted",),
        pattern=re.compile(r"NCCL communicator was aborted(?: on rank (?P<rank>\d{1,7}))?"),
        title="The communicator of NCCL was ended{of_rank}",
        cause="The watchdog, or another rank's error.",
        advice="Look for the watchdog's line, and for the rank that failed first.",
        example="RuntimeError: NCCL communicator was aborted on rank 3.",
        sources=_C10D,
    ),
    Signature(
        id="c10d_monitored_barrier",
        group="c10d",
        severity="fatal",
        literals=(b"monitoredBarrier", b"Monitored barrier"),
        pattern=re.compile(
            r"(?:Rank\(?s?\)? (?P<ranks>[\d, ]{1,200}) failed to pass|[^\n]{0,80}) ?"
            r"(?:monitoredBarrier|Monitored barrier)",
            re.IGNORECASE,
        ),
        title="Not all ranks came to a barrier",
        cause="A rank failed before, or takes another path through the program.",
        advice="Look for the first error of the ranks that it names.",
        example="RuntimeError: Rank 3 failed to pass monitoredBarrier in 30000 ms",
        sources=_C10D,
    ),
    Signature(
        id="c10d_address_in_use",
        group="c10d",
        severity="fatal",
        literals=(
            b"has failed to listen on any local network",
            b"Address already in use",
            b"EADDRINUSE",
        ),
        pattern=re.compile(
            r"server socket has failed to listen on any local network address"
            r"|(?:RuntimeError|OSError|DistNetworkError|port: ?\d{1,5})[^\n]{0,200}"
            r"(?:Address already in use|EADDRINUSE)"
        ),
        title="The port of the rendezvous is taken",
        cause="Another job on the node, or one left over, uses the same MASTER_PORT.",
        advice="Make the port from the job id (10000 + SLURM_JOB_ID modulo 20000), or port 0 with"
        " --rdzv-backend c10d on one node.",
        example="RuntimeError: The server socket has failed to listen on any local network address.",
        sources=_C10D,
    ),
    Signature(
        id="c10d_connect_timeout",
        group="c10d",
        severity="fatal",
        literals=(b"The client socket has ", b"DistNetworkError", b"DistStoreError"),
        pattern=re.compile(
            r"The client socket has (?:timed out after (?P<timeout>\d{1,9}\w{0,3})|failed to connect)"
            r"[^\n]{0,60}?(?:to \(?(?P<host>[^\s,()]{1,100}), (?P<port>\d{1,5})\)?|$)"
            r"|DistNetworkError|DistStoreError"
        ),
        title="A process{of_rank} did not reach the head node",
        cause="The name of the head node leads to a wrong address or interface, its process did not"
        " start, a firewall blocks the port, or the number of nodes is wrong.",
        advice="See that rank 0 runs and MASTER_ADDR is right (`getent hosts NAME` on each node);"
        " MASTER_PORT from the job id; GLOO_SOCKET_IFNAME and NCCL_SOCKET_IFNAME.",
        example="The client socket has timed out after 60s while trying to connect to (n1, 29500).",
        sources=_C10D,
    ),
    Signature(
        id="c10d_name_resolution",
        group="c10d",
        severity="fatal",
        literals=(b"Name or service not known", b"failure in name resolution"),
        pattern=re.compile(
            r"(?:gaierror|getaddrinfo|\[Errno -[235]\]|resolve)[^\n]{0,120}"
            r"(?:Name or service not known|Temporary failure in name resolution)"
        ),
        title="A host name means nothing on a node",
        cause="MASTER_ADDR cannot be resolved there; on some sites it needs a suffix; containers may"
        " lack /etc/hosts.",
        advice="`getent hosts NAME` on the nodes; the address itself; the suffix of the site profile.",
        example="socket.gaierror: [Errno -2] Name or service not known",
        sources=_C10D,
    ),
    Signature(
        id="c10d_environment_missing",
        group="c10d",
        severity="fatal",
        literals=(b"environment variable ",),
        pattern=re.compile(r"environment variable (?P<name>[A-Z_]{4,20}) expected, but not set"),
        title="{name} is not set: the program was started without a launcher",
        cause="Plain python or srun does not set what init_process_group reads.",
        advice="Start with torchrun, or export RANK, WORLD_SIZE, LOCAL_RANK, MASTER_ADDR and"
        " MASTER_PORT from SLURM_PROCID and the like in each task.",
        example="ValueError: Error initializing torch.distributed using env:// rendezvous:"
        " environment variable RANK expected, but not set",
        sources=_C10D,
    ),
    Signature(
        id="c10d_not_initialized",
        group="c10d",
        severity="fatal",
        literals=(b"rocess group has not been initialized",),
        pattern=re.compile(r"[Dd]efault process group has not been initialized"),
        title="A collective was called before init_process_group",
        cause="A path of the program that expects a launcher, or a library imported too early.",
        advice="Call init_process_group first; start with torchrun or srun.",
        example="ValueError: Default process group has not been initialized, please make sure to"
        " call init_process_group.",
        sources=_C10D,
    ),
    Signature(
        id="c10d_peer_closed",
        group="c10d",
        severity="fatal",
        role="consequence",
        literals=(b"Connection reset by peer", b"Connection closed by peer", b"Broken pipe"),
        pattern=re.compile(
            r"(?:gloo|c10d|TCPStore|Store|recvValue|sendBytes|recvBytes)[^\n]{0,200}"
            r"(?:Connection reset by peer|Connection closed by peer|Broken pipe)"
        ),
        title="The connection to another rank or to the store broke",
        cause="The process at the other end had ended.",
        advice="Look for the rank or node that failed first.",
        example="RuntimeError: [gloo/transport/tcp/pair.cc:534] Connection closed by peer [n2]:5",
        sources=_C10D,
    ),
    Signature(
        id="c10d_ipv6",
        group="c10d",
        severity="benign",
        literals=(b"Address family not supported by protocol",),
        pattern=re.compile(r"errno: 97 - Address family not supported by protocol"),
        title="The node has no IPv6; IPv4 is used",
        cause="c10d tries IPv6 first.",
        advice="Nothing to do: this is never the cause.",
        example="[W socket.cpp:426] [c10d] The server socket cannot be initialized on [::]:29500"
        " (errno: 97 - Address family not supported by protocol).",
        sources=_C10D,
    ),
    Signature(
        id="c10d_not_destroyed",
        group="c10d",
        severity="benign",
        literals=(b"destroy_process_group() was not called",),
        pattern=re.compile(r"destroy_process_group\(\) was not called"),
        title="The program ends without destroy_process_group",
        cause="Nothing is wrong; PyTorch asks for a tidy end.",
        advice="Call torch.distributed.destroy_process_group() at the end.",
        example="[rank0]:[W131 12:00:00.1 ProcessGroupNCCL.cpp:1250] Warning: WARNING:"
        " destroy_process_group() was not called before program exit",
        sources=_C10D,
    ),
)
