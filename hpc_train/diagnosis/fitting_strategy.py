"""A run that ran out of GPU memory -> the strategy that would fit, if its model is known."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

from hpc_train.advice.advice import AdviceRow
from hpc_train.advice.machine_size import MachineSize
from hpc_train.advice.program_of_job import program_of
from hpc_train.advice.question import Question
from hpc_train.advice.rank_memory import GIB
from hpc_train.advice.rows import make_rows
from hpc_train.base.value import Sourced
from hpc_train.diagnosis.diagnosis import LogFinding
from hpc_train.jobs.job import JobSpec
from hpc_train.runs.run import Manifest

_CAPACITY = re.compile(r"([\d.]{1,16}) ?([MGT])iB (?:total capacity|of which)")
_IN_GIB = {"M": 1 / 1024, "G": 1.0, "T": 1024.0}
# If nothing fits on the ranks of the run, so many times as many are looked at.
_MORE_RANKS = (1, 2, 4, 8)


def strategy_that_fits(manifest: Manifest, finding: LogFinding) -> str:
    """Return a sentence with the strategy that fits the GPU of a finding; empty if none is known.

    The formulas are those of `hpctrain advise`. They say nothing of a run that fits by them.
    """
    gib, topology = _capacity(finding), manifest.plan.topology
    program = program_of(Sourced(value=manifest.spec, origins={}), {}, "")
    if gib is None or program.parameters is None:
        return ""
    question = Question(
        program=program,
        machine=MachineSize(
            site="",
            partition="",
            gpus_per_node=topology.gpus_per_node or topology.tasks_per_node,
            least_gib=gib,
            most_gib=gib,
        ),
        sizes=tuple(times * topology.world_size for times in _MORE_RANKS),
    )
    rows, _ = make_rows(question)
    return _sentence(rows, _strategy(manifest.spec), topology.world_size, gib)


def _capacity(finding: LogFinding) -> float | None:
    """Return the memory of the GPU in GiB, as the message of torch states it."""
    texts = [evidence.text for evidence in finding.evidence]
    found = next(filter(None, map(_CAPACITY.search, texts)), None)
    return float(found[1]) * _IN_GIB[found[2]] if found else None


def _strategy(job: JobSpec) -> str:
    given = [word for option, word in pairwise(job.command) if option == "--strategy"]
    return (job.trainer and job.trainer.strategy) or (given[-1] if given else "ddp")


def _sentence(rows: Sequence[AdviceRow], used: str, ranks: int, gib: float) -> str:
    """Return the answer; rows are in the order of ranks, and of preference in each."""
    own = next((row for row in rows if (row.strategy, row.ranks) == (used, ranks)), None)
    if own is not None and own.fits == "yes":
        return ""
    best = next((row for row in rows if row.fits == "yes"), None)
    if own is not None and own.change and (best is None or best.ranks > ranks):
        return f"By the formulas of `hpctrain advise`, {used} fits with {own.change}."
    if best is None or best.memory is None:
        return ""
    noun, whole = "rank" if best.ranks == 1 else "ranks", best.memory.whole
    return (
        f"By the formulas of `hpctrain advise`, strategy {best.strategy} fits on {best.ranks} "
        f"{noun}, with at most {(whole.high or whole.low) / GIB:.3g} of {gib:.4g} GiB."
    )
