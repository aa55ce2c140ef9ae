"""Finished jobs -> the energy that the accounting recorded of each, with one sacct call.

The record of the allocation has the energy of the whole job. Those of its steps are not summed: the
steps `batch`, `extern` and `0` overlap in time, and each has the energy of its nodes, which is that
of other jobs on the same nodes too (SchedMD, sacct manual; src/slurmctld/step_mgr.c).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from hpc_train.model.submission import SlurmEndpoint
from hpc_train.model.units import slurm_joules
from hpc_train.model.value import Value
from hpc_train.submissions.slurm.sacct import call_sacct
from hpc_train.submissions.slurm.slurm_commands import unanswered
from hpc_train.submissions.slurm.squeue import FIELD, base_ids, epoch, job_ids

_FIELDS = "JobID,Start,End,AllocNodes,ConsumedEnergyRaw"
# A report without energies is better than one that waits for a slow database.
_TIMEOUT_S = 10.0
# Mean power of a node above which an energy is an error of its counter: a node of 72 GPUs would
# need less. Sites see values near 1e20 J (LUMI user guide, energy consumption of jobs).
_MOST_W = 200e3


class AccountedJob(Value, frozen=True, kw_only=True):
    """Start and end of an ended job, in seconds since the epoch, and its energy [J] if known."""

    start: float
    end: float
    energy_j: float | None


def accounted_jobs(
    cluster: SlurmEndpoint, jobs: Collection[str], since: str
) -> Mapping[str, AccountedJob]:
    """Return the last attempts of those jobs that the accounting knows and that have ended.

    `since` is the date (YYYY-MM-DD) of the oldest job. Empty if there is no accounting, no sacct or
    no answer.
    """
    if not base_ids(jobs):
        return {}
    options = ("--noconvert", f"--format={_FIELDS}")
    done = call_sacct(cluster, jobs, since, *options, timeout_s=_TIMEOUT_S)
    return {} if unanswered(done) else parse(done.stdout)


def parse(text: str) -> dict[str, AccountedJob]:
    """Parse the output of sacct; steps, jobs without an end and malformed lines are left out."""
    found = {}
    for line in text.split("\n"):
        try:
            word, start, end, nodes, energy = line.split(FIELD)
            jobs, joules = job_ids(word), slurm_joules(energy)
        except ValueError:
            continue
        started, ended = epoch(start), epoch(end)
        if started is None or ended is None:
            continue
        if joules is not None and not _is_possible(joules, nodes, ended - started):
            joules = None
        found.update(dict.fromkeys(jobs, AccountedJob(start=started, end=ended, energy_j=joules)))
    return found


def _is_possible(energy_j: float, nodes: str, seconds: float) -> bool:
    count = int(nodes) if nodes.isascii() and nodes.isdecimal() else 0
    return energy_j <= _MOST_W * count * max(seconds, 1.0)
