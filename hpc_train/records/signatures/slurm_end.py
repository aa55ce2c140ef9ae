"""Signatures of how Slurm ends jobs and steps: limits, preemption, nodes, memory of the host."""

from __future__ import annotations

import re

from hpc_train.records.signatures.base import Signature

_SRUN = ("https://slurm.schedmd.com/srun.html",)
_WHAT = (
    r"\*\*\* (?P<what>JOB|STEP) (?P<job>[\w.+]{1,40})(?: ON (?P<node>\S{1,80}))? CANCELLED"
    r"(?: AT (?P<when>[\dT:+-]{1,30}))?"
)
_STOPPED = (b" CANCELLED AT ", b" CANCELLED DUE ", b" CANCELLED ***")


def _due(reason: str) -> re.Pattern[str]:
    return re.compile(rf"{_WHAT} DUE TO {reason}")


SLURM_END = (
    Signature(
        id="slurm_time_limit",
        group="slurm",
        severity="fatal",
        literals=_STOPPED,
        pattern=_due("TIME LIMIT"),
        title="{what} {job} was stopped: its time was over",
        cause="The work takes longer than `--time`, or a rank hung until then.",
        advice="Look at the time of the last training step: old means a hang. Else a longer"
        " `--time`, or checkpoints and a requeue (`--signal`, `--requeue`).",
        example="slurmstepd: error: *** JOB 71 ON n1 CANCELLED AT 2025-01-31T12:00:00 DUE TO TIME"
        " LIMIT ***",
        sources=_SRUN,
    ),
    Signature(
        id="slurm_preempted",
        group="slurm",
        severity="fatal",
        literals=_STOPPED,
        pattern=_due("PREEMPTION"),
        title="{what} {job} was stopped for a job of higher priority",
        cause="The partition or the qos may be preempted.",
        advice="`--requeue` with checkpoints, or a qos that is not preempted.",
        example="slurmstepd: error: *** STEP 71.0 ON n1 CANCELLED AT 2025-01-31T12:00:00 DUE TO"
        " PREEMPTION ***",
        sources=("https://slurm.schedmd.com/preempt.html",),
    ),
    Signature(
        id="slurm_node_failure",
        group="slurm",
        severity="fatal",
        literals=(*_STOPPED, b"due to node failure", b"Node failure on"),
        pattern=re.compile(
            rf"{_WHAT} DUE TO NODE FAILURE|[Nn]ode failure on (?P<failed>\S{{1,80}})"
            r"|due to node failure"
        ),
        title="A node of the job failed",
        cause="The node crashed, lost its network, or its slurmd died.",
        advice="Submit again, without that node (`sacct -j JOB -o nodelist,state`, `--exclude`).",
        example="slurmstepd: error: *** JOB 71 ON n1 CANCELLED AT 2025-01-31T12:00:00 DUE TO NODE"
        " FAILURE, SEE SLURMCTLD LOG FOR DETAILS ***",
        sources=_SRUN,
    ),
    Signature(
        id="slurm_requeued",
        group="slurm",
        severity="warning",
        literals=_STOPPED,
        pattern=_due("JOB REQUEUE"),
        title="Slurm put {what} {job} back into the queue",
        cause="Somebody, or a node failure, requeued the job.",
        advice="Nothing, if the program goes on from its checkpoint.",
        example="slurmstepd: error: *** JOB 71 ON n1 CANCELLED AT 2025-01-31T12:00:00 DUE TO JOB"
        " REQUEUE ***",
        sources=_SRUN,
    ),
    Signature(
        id="slurm_task_failure",
        group="slurm",
        severity="fatal",
        role="consequence",
        literals=_STOPPED,
        pattern=_due("TASK FAILURE"),
        title="Slurm stopped the step because one task had failed",
        cause="`--kill-on-bad-exit` ends all tasks when one exits with an error.",
        advice="Look for the first error of the task that failed first.",
        example="slurmstepd: error: *** STEP 71.0 ON n1 CANCELLED AT 2025-01-31T12:00:00 DUE TO"
        " TASK FAILURE ***",
        sources=_SRUN,
    ),
    Signature(
        id="slurm_signalled",
        group="slurm",
        severity="fatal",
        literals=_STOPPED,
        pattern=re.compile(rf"{_WHAT} DUE [Tt][Oo] SIGNAL (?P<signal>[^*]{{1,60}}?) \*"),
        title="{what} {job} was ended by signal {signal}",
        cause="`scancel --signal`, `--signal`, or the site's scripts sent it.",
        advice="Ask who sent it (`sacct -j JOB`); catch the signal to write a checkpoint.",
        example="slurmstepd: error: *** STEP 71.0 ON n1 CANCELLED AT 2025-01-31T12:00:00 DUE to"
        " SIGNAL Terminated ***",
        sources=_SRUN,
    ),
    Signature(
        id="slurm_cancelled",
        group="slurm",
        severity="fatal",
        literals=_STOPPED,
        pattern=re.compile(rf"{_WHAT}(?! DUE)"),
        title="{what} {job} was cancelled",
        cause="A person or a script called scancel, or another task of the step failed before.",
        advice="An error before this line is the cause; without one, ask who called scancel.",
        example="slurmstepd: error: *** STEP 71.0 ON n1 CANCELLED AT 2025-01-31T12:00:00 ***",
        sources=_SRUN,
    ),
    Signature(
        id="slurm_host_oom",
        group="slurm",
        severity="fatal",
        literals=(b"oom-kill event", b"oom_kill event", b": Out Of Memory", b"OOM Killed"),
        pattern=re.compile(
            r"Detected \d{1,9} oom[-_]kill event(?:s|\(s\))? in |OOM Killed"
            r"|error: (?P<node>\S{1,80}): tasks? (?P<tasks>[\d,-]{1,200}): Out Of Memory"
        ),
        title="The memory of the host ran out: the kernel killed processes of the job",
        cause="The job may use only what `--mem` gives it. This is no matter of the GPU's memory.",
        advice="More `--mem` (or `--mem=0` on whole nodes), fewer workers of the DataLoader, no"
        " pinned or cached copies of the data in each rank.",
        example="slurmstepd: error: Detected 2 oom_kill events in StepId=71.0. Some of the step"
        " tasks have been OOM Killed.",
        sources=("https://slurm.schedmd.com/cgroup.conf.html",),
    ),
    Signature(
        id="slurm_step_aborted",
        group="slurm",
        severity="info",
        role="consequence",
        literals=(b"Job step aborted", b"Force Terminated", b"forcing job termination"),
        pattern=re.compile(
            r"srun: (?:error: )?(?:Job step aborted: Waiting up to \d{1,9} seconds"
            r"|Force Terminated|forcing job termination)"
        ),
        title="srun ends the other tasks of the step",
        cause="A task failed, or the step was cancelled.",
        advice="Look for the first error of the task that failed first.",
        example="srun: Job step aborted: Waiting up to 32 seconds for job step to finish.",
        sources=_SRUN,
    ),
)
