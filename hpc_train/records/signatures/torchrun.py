"""Signatures of torchrun: its agents, its report of failed ranks, the rendezvous."""

from __future__ import annotations

import re

from hpc_train.records.signatures.base import Signature

_ELASTIC = ("https://pytorch.org/docs/stable/distributed.elastic.html",)
_HEAD = (
    "MASTER_ADDR = the first name of `scontrol show hostnames`, one port from the job id, the same"
    " --nnodes on all nodes; see that the name is not 127.0.x.x there, and that agent 0 runs."
)

TORCHRUN = (
    Signature(
        id="torchrun_child_failed_rank",
        group="torchrun",
        severity="fatal",
        role="consequence",
        literals=(b"  exitcode  : ",),
        pattern=re.compile(
            r"exitcode  : (?P<exitcode>-?\d{1,6}) \(pid: (?P<pid>\d{1,10})\)"
            r"(?: +\((?P<signal>SIG\w{2,10})\))?"
        ),
        title="torchrun: rank {rank} ended with {exitcode}",
        cause="1 is an exception in Python, 2 wrong arguments, -N a signal; -15 are victims.",
        advice="The entry under `Root Cause` failed first: read the error of that rank."
        " `@record` on main() puts its traceback here.",
        example="Root Cause (first observed failure):\n[0]:\n  time      : 2025-01-31_12:00:00\n"
        "  host      : n1\n  rank      : 3 (local_rank: 3)\n  exitcode  : 1 (pid: 4711)\n"
        "  error_file: <N/A>\n  traceback : To enable traceback see: https://pytorch.org/",
        sources=_ELASTIC,
    ),
    Signature(
        id="torchrun_process_failed",
        group="torchrun",
        severity="fatal",
        role="consequence",
        literals=(b"failed (exitcode: ",),
        pattern=re.compile(
            r"failed \(exitcode: (?P<exitcode>-?\d{1,6})\) local_rank: (?P<local_rank>\d{1,4}) "
            r"\(pid: (?P<pid>\d{1,10})\)"
        ),
        title="The process with local rank {local_rank} ended with {exitcode}",
        cause="1 is an exception in Python, 2 wrong arguments, -N a signal.",
        advice="Look for the first error of this process.",
        example="E0131 12:00:00.123000 99 api.py:988] failed (exitcode: 1) local_rank: 3 (pid: 471)"
        " of binary: python",
        sources=_ELASTIC,
    ),
    Signature(
        id="torchrun_told_to_stop",
        group="torchrun",
        severity="fatal",
        role="consequence",
        literals=(b" got signal: ", b" death signal"),
        pattern=re.compile(
            r"(?:Process \d{1,10} got signal: |[Rr]eceived (?=[\w.]{1,20} death signal))"
            r"(?P<signal>\d{1,3}|Signals\.\w{3,12})"
        ),
        title="torchrun was told to stop (signal {signal})",
        cause="scancel, preemption, the time limit, another node of the job that failed; 1 is a"
        " terminal that was closed.",
        advice="Look for what Slurm says at this time, and for errors of other nodes.",
        example="torch.distributed.elastic.multiprocessing.api.SignalException: Process 471 got"
        " signal: 15",
        sources=_ELASTIC,
    ),
    Signature(
        id="torchrun_stops_others",
        group="torchrun",
        severity="info",
        role="consequence",
        literals=(b" closing signal SIG",),
        pattern=re.compile(
            r"Sending process (?P<pid>\d{1,10}) closing signal (?P<signal>SIG\w{2,10})"
        ),
        title="torchrun ends the processes beside one that failed",
        cause="A process of this node ended with an error, or torchrun was told to stop.",
        advice="Look for the process that failed first.",
        example="W0131 12:00:00.123000 99 api.py:1014] Sending process 472 closing signal SIGTERM",
        sources=_ELASTIC,
    ),
    Signature(
        id="torchrun_rendezvous_timeout",
        group="torchrun",
        severity="fatal",
        literals=(
            b"RendezvousTimeoutError",
            b"RendezvousConnectionError",
            b"connection to the C10d store has failed",
        ),
        pattern=re.compile(
            r"(?P<kind>RendezvousTimeoutError|RendezvousConnectionError)"
            r"|connection to the C10d store has failed"
        ),
        title="The nodes of the job did not find one another (rendezvous of torchrun)",
        cause="The head node cannot be reached, or not all nodes started torchrun.",
        advice=_HEAD,
        example="torch.distributed.elastic.rendezvous.api.RendezvousConnectionError: The connection"
        " to the C10d store has failed.",
        sources=_ELASTIC,
    ),
    Signature(
        id="torchrun_rendezvous_closed",
        group="torchrun",
        severity="fatal",
        role="consequence",
        literals=(b"RendezvousClosedError", b"RendezvousGracefulExitError"),
        pattern=re.compile(r"RendezvousClosedError|RendezvousGracefulExitError"),
        title="A node came to the rendezvous when it was closed",
        cause="The others had failed or ended; or an old rendezvous id is used again.",
        advice="Look for the error of the node that ended first; --rdzv-id with the job id.",
        example="torch.distributed.elastic.rendezvous.api.RendezvousClosedError",
        sources=_ELASTIC,
    ),
    Signature(
        id="torchrun_child_failed",
        group="torchrun",
        severity="fatal",
        role="consequence",
        literals=(b"errors.ChildFailedError",),
        pattern=re.compile(r"elastic\.multiprocessing\.errors\.ChildFailedError"),
        title="torchrun ended because a rank had failed",
        cause="The box after this line names the rank that failed first.",
        advice="Read the error of the rank under `Root Cause`.",
        example="torch.distributed.elastic.multiprocessing.errors.ChildFailedError:",
        sources=_ELASTIC,
    ),
)
