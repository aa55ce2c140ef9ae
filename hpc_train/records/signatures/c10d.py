"""Signatures of torch.distributed: the store, the start and the end of a process group."""

from __future__ import annotations

import re

from hpc_train.records.signatures.base import Signature

_C10D = ("https://pytorch.org/docs/stable/distributed.html",)

C10D = (
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
        id="c10d_connect_retry",
        group="c10d",
        severity="benign",
        literals=(b"[c10d] The client socket", b"[c10d] The server socket"),
        pattern=re.compile(
            r"\[W[^\]\n]{0,120}\] \[c10d\] The (?P<side>client|server) socket (?:has failed|cannot)"
        ),
        title="An attempt of the {side} socket of c10d failed; it tries again",
        cause="The other process is not up yet, or one of several addresses does not work.",
        advice="Nothing, unless an error of c10d follows.",
        example="[W131 12:00:00.1 socket.cpp:601] [c10d] The client socket has failed to connect to"
        " [n1]:29500 (errno: 111 - Connection refused).",
        sources=_C10D,
    ),
    Signature(
        id="c10d_peer_closed",
        group="c10d",
        severity="fatal",
        role="consequence",
        literals=(
            b"Connection reset by peer",
            b"Connection closed by peer",
            b"Broken pipe",
            b"Connection was likely closed",
            b"failed to recv, got 0 bytes",
        ),
        pattern=re.compile(
            r"(?:gloo|c10d|TCPStore|Store|recvValue|sendBytes|recvBytes)[^\n]{0,200}"
            r"(?:Connection reset by peer|Connection closed by peer|Broken pipe)"
            r"|Connection was likely closed|failed to recv, got 0 bytes"
        ),
        title="The connection to another rank or to the store broke",
        cause="The process at the other end had ended.",
        advice="Look for the rank or node that failed first.",
        example="RuntimeError: [gloo/transport/tcp/pair.cc:534] Connection closed by peer [n2]:5",
        sources=_C10D,
    ),
    Signature(
        id="c10d_collective_mismatch",
        group="c10d",
        severity="fatal",
        literals=(b"mismatch between collectives on ranks",),
        pattern=re.compile(
            r"mismatch between collectives on ranks[^\n]{0,40}?(?:Rank (?P<rank>\d{1,7}) is running"
            r" collective: \w{0,40}\(?(?P<what>[^\n]{1,120}))?$"
        ),
        title="The ranks called unequal collectives",
        cause="The program takes another way on some ranks, or their tensors differ in size.",
        advice="Read which collective each rank names; make all ranks call the same in one order.",
        example="RuntimeError: Detected mismatch between collectives on ranks. Rank 0 is running"
        " collective: CollectiveFingerPrint(SequenceNumber=3, OpType=ALLREDUCE",
        sources=_C10D,
    ),
    Signature(
        id="c10d_monitored_barrier",
        group="c10d",
        severity="fatal",
        literals=(b"monitoredBarrier", b"Monitored barrier"),
        pattern=re.compile(
            r"(?:\bRanks? (?P<ranks>[\d, ]{1,200}) failed to pass )?"
            r"(?:monitoredBarrier|Monitored barrier|monitored barrier)"
        ),
        title="Not all ranks came to a barrier",
        cause="A rank failed before, or takes another path through the program.",
        advice="Look for the first error of the ranks that it names.",
        example="RuntimeError: Rank 3 failed to pass monitoredBarrier in 30000 ms",
        sources=_C10D,
    ),
    Signature(
        id="c10d_store_barrier",
        group="c10d",
        severity="fatal",
        literals=(b"in store based barrier on rank: ",),
        pattern=re.compile(
            r"Timed out initializing process group in store based barrier on rank: "
            r"(?P<rank>\d{1,7}), [^\n]{0,120}\(world_size=(?P<size>\d{1,7}), "
            r"worker_count=(?P<count>\d{1,7})"
        ),
        title="Of {size} ranks, {count} came to the start of the process group",
        cause="Fewer: a rank failed before, or was not started. More: the store is left over from"
        " another start with the same port, or world_size is wrong.",
        advice="Look for the first error of the other ranks; a new MASTER_PORT for each job;"
        " WORLD_SIZE = number of processes.",
        example="RuntimeError: Timed out initializing process group in store based barrier on rank:"
        " 2, for key: store_based_barrier_key:1 (world_size=2, worker_count=4, timeout=0:30:00)",
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
        example="RuntimeError: The server socket has failed to listen on any local network"
        " address.",
        sources=_C10D,
    ),
    Signature(
        id="c10d_connect_timeout",
        group="c10d",
        severity="fatal",
        literals=(
            b"The client socket has ",
            b"DistNetworkError",
            b"DistStoreError",
            b"connect() timed out",
        ),
        pattern=re.compile(
            r"The client socket has (?:timed out after (?P<timeout>\d{1,9}\w{0,3})"
            r"|failed to connect)"
            r"[^\n]{0,60}?(?:to \(?(?P<host>[^\s,()]{1,100}), (?P<port>\d{1,5})\)?|$)"
            r"|DistNetworkError|DistStoreError|connect\(\) timed out\."
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
        cause="MASTER_ADDR cannot be resolved there; on some sites it needs a suffix;"
        " containers may lack /etc/hosts.",
        advice="`getent hosts NAME` on the nodes; the address itself; the suffix of the site"
        " profile.",
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
