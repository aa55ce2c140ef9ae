"""Signatures of the watchdog of torch.distributed: operations of NCCL that do not end."""

from __future__ import annotations

import re

from hpc_train.records.signatures.base import Signature

_C10D = ("https://pytorch.org/docs/stable/distributed.html",)
_ENVIRONMENT = ("https://pytorch.org/docs/stable/torch_nccl_environment_variables.html",)
_WATCHDOG = "A rank did not come to this operation, or the network stands still."

WATCHDOG = (
    Signature(
        id="nccl_watchdog_timeout",
        group="c10d",
        severity="fatal",
        literals=(b"Watchdog caught collective operation timeout",),
        pattern=re.compile(
            r"(?:\[Rank (?P<rank>\d{1,7})\] )?Watchdog caught collective operation timeout: "
            r"Work\w{1,10}\((?:SeqNum=(?P<seq>\d{1,18}), )?OpType=(?P<op>\w{1,40})"
            r"(?:[^\n]{0,300}?Timeout\(ms\)=(?P<timeout_ms>\d{1,12}))?"
        ),
        title="{op} was not done in time, says the watchdog{of_rank}",
        cause=f"{_WATCHDOG} The rank that is silent, or has the smallest number, is the one to look"
        " at; unequal operations at one number are unequal code paths.",
        advice="Read what the silent rank did last. At the start: network (transport findings,"
        " NCCL_DEBUG=INFO). Later: slow files or an evaluation on one rank;"
        " TORCH_NCCL_TRACE_BUFFER_SIZE=2000 and TORCH_NCCL_DUMP_ON_TIMEOUT=1 record the"
        " operations; a longer timeout in init_process_group.",
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
        title="Operations{of_rank}: asked for up to {enqueued}, done up to {completed}",
        cause="Compare the ranks: the smallest number belongs to the one that lags.",
        advice="Look at the rank with the smallest number.",
        example="[PG ID 0 PG GUID 0(default_pg) Rank 3] Exception (either an error or timeout)"
        " detected by watchdog at work: 7, last enqueued NCCL work: 9, last completed"
        " NCCL work: 6.",
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
        id="c10d_heartbeat_store",
        group="c10d",
        severity="info",
        role="consequence",
        literals=(b"HeartbeatMonitor", b"eartbeat monitor"),
        pattern=re.compile(
            r"[Hh]eartbeat ?[Mm]onitor[^\n]{0,200}?(?:should dump|TCPStore|[Ss]tore|dump)"
        ),
        title="A monitor thread of PyTorch{of_rank} lost the store, or looked for it in vain",
        cause="The process that held the store has ended.",
        advice="Look for the rank that failed first.",
        example="[rank3]:[W131 12:00:00.1 ProcessGroupNCCL.cpp:1662] [PG ID 0 Rank 3]"
        ' HeartbeatMonitor: failed to check the "should dump" flag on TCPStore',
        sources=_ENVIRONMENT,
    ),
    Signature(
        id="c10d_heartbeat",
        group="c10d",
        severity="fatal",
        literals=(
            b"watchdog got stuck",
            b"watchdog thread's heartbeat",
            b"eartbeat monitor timed out",
        ),
        pattern=re.compile(
            r"(?:\bRank (?P<rank>\d{1,7})\] [^\n]{0,60}?)?(?:watchdog got stuck for"
            r"|watchdog thread's heartbeat|[Hh]eartbeat monitor timed out)"
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
        title="The communicator of NCCL{of_rank} was ended",
        cause="The watchdog, or another rank's error.",
        advice="Look for the watchdog's line, and for the rank that failed first.",
        example="RuntimeError: NCCL communicator was aborted on rank 3.",
        sources=_C10D,
    ),
)
