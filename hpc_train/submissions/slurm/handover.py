"""One call of sbatch, through submitit: tried again while Slurm is slow, never made twice."""

from __future__ import annotations

import logging
import os
import time
from typing import TYPE_CHECKING

from hpc_train.errors import SubmitError
from hpc_train.model.value import Value
from hpc_train.submissions.base import Terms
from hpc_train.submissions.slurm.batch import Batch
from hpc_train.submissions.slurm.commands import transient
from hpc_train.submissions.slurm.environment import scrubbed
from hpc_train.submissions.slurm.refusals import advice
from hpc_train.submissions.slurm.search import find, owner

if TYPE_CHECKING:
    from hpc_train.submissions.slurm.submitting import ScriptExecutor

_PAUSES_S = (2.0, 4.0, 8.0, 16.0, 30.0)


class Sbatch(Value, frozen=True, kw_only=True):
    """What sbatch is asked."""

    batch: Batch
    terms: Terms
    comment: str

    @property
    def options(self) -> tuple[str, ...]:
        """Options that are not in the script, because they belong to this one submission."""
        options = [f"--output={self.batch.output}", f"--comment={self.comment}"]
        if self.batch.elements:
            most = self.terms.limits.max_array_running
            share = f"%{most}" if most else ""
            options.append(f"--array={','.join(map(str, self.batch.elements))}{share}")
        if self.terms.exclude:
            options.append(f"--exclude={','.join(self.terms.exclude)}")
        return tuple(options)

    @property
    def command(self) -> tuple[str, ...]:
        """The whole command, as one would type it."""
        return (
            "sbatch",
            "--parsable",
            *self.options,
            str(self.batch.script),
            *self.batch.arguments,
        )


def hand_over(sbatch: Sbatch) -> str:
    """Return the job's id.

    When the answer is lost, the queue is searched for the job's comment before anything is sent
    again.

    Raises:
        SubmitError: refused; `transient` when nobody knows whether the job was accepted.
    """
    executor = _executor(sbatch)
    failure = ""
    for pause_s in (*_PAUSES_S, 0.0):
        try:
            return executor.submit_script().job_id
        except SubmitError as refusal:
            failure = refusal.message
        if not transient(failure):
            raise SubmitError(f"sbatch: {_line(failure)}", advice(failure))
        logging.getLogger(__name__).warning(
            "Slurm does not answer (%s); trying again in %.0f s", _line(failure), pause_s
        )
        job, silent = _look_again(sbatch, pause_s)
        if job is not None:
            return job
        if silent:
            break
    said = f"sbatch was not answered: {_line(failure)}"
    hint = "hpctrain status finds the job if it was accepted; submit again later"
    raise SubmitError(said, hint, transient=True)


def _look_again(sbatch: Sbatch, pause_s: float) -> tuple[str | None, bool]:
    """Wait, then ask for the job; whether Slurm stays silent even after a long while."""
    for further_s in (0.0, *_PAUSES_S):
        time.sleep(pause_s + further_s)
        folder = sbatch.batch.runs[0].path
        job, silent = find(sbatch.terms.cluster, sbatch.comment, owner(folder))
        if not silent:
            return job, False
    return None, True


def _executor(sbatch: Sbatch) -> ScriptExecutor:
    # Costs 90 ms, which a query need not pay.
    from hpc_train.submissions.slurm.submitting import ScriptExecutor

    batch = sbatch.batch
    text = batch.script.read_text(encoding="utf-8")
    words = [
        line.removeprefix("#SBATCH --") for line in text.splitlines() if line[:10] == "#SBATCH --"
    ]
    options = {word.partition("=")[0] for word in words}
    return ScriptExecutor(
        batch.runs[0].path,
        batch.script,
        sbatch.options,
        batch.arguments,
        scrubbed(os.environ, sbatch.terms.cluster, options),
    )


def _line(text: str) -> str:
    """Return what sbatch said, on one line and without its name before each part."""
    return "; ".join(
        line.removeprefix("sbatch: error: ").strip() for line in text.splitlines() if line.strip()
    )
