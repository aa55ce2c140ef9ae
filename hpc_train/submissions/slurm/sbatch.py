"""Calls of sbatch: a submission, retried if Slurm is slow, never made twice."""

from __future__ import annotations

import logging
import os
import re
import time
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Literal

from msgspec.structs import replace

from hpc_train.errors import SubmitError
from hpc_train.model.slurm_answer import Refusal
from hpc_train.model.value import Value
from hpc_train.slurm_options import sbatch_grammar
from hpc_train.submissions.base import ExecutorOptions
from hpc_train.submissions.slurm.job_arrays import SbatchCall
from hpc_train.submissions.slurm.job_states import find
from hpc_train.submissions.slurm.sbatch_environment import environment_changes, options_in
from hpc_train.submissions.slurm.slurm_commands import call_slurm, transient
from hpc_train.submissions.submission_file import owner
from hpc_train.typed_values import load_data

if TYPE_CHECKING:
    from subprocess import Popen

    from hpc_train.submissions.slurm.submitit_script import ScriptExecutor
    from hpc_train.subprocesses import Finished

_PAUSES_S = (2.0, 4.0, 8.0, 16.0, 30.0)
# After these errors the request was not accepted; after any other it may have been.
_NOT_REACHED = (
    "unable to contact",
    "unable to establish",
    "connection refused",
    "no route to host",
    "unreachable",
)
_UNDER_WAY_S = 15.0


class Sbatch(Value, frozen=True, kw_only=True):
    """The arguments of one sbatch call."""

    batch: SbatchCall
    executor_options: ExecutorOptions
    comment: str

    @property
    def options(self) -> tuple[str, ...]:
        """Options that are not in the script, because they belong to this one submission."""
        options = [f"--output={self.batch.output}", f"--comment={self.comment}"]
        if self.batch.elements:
            most = self.executor_options.limits.max_array_running
            share = f"%{most}" if most else ""
            options.append(f"--array={','.join(map(str, self.batch.elements))}{share}")
        if self.executor_options.exclude:
            options.append(f"--exclude={','.join(self.executor_options.exclude)}")
        return tuple(options)

    @property
    def command(self) -> tuple[str, ...]:
        """The whole command, as typed in a shell."""
        return (
            "sbatch",
            "--parsable",
            *self.options,
            str(self.batch.script),
            *self.batch.arguments,
        )


class Call(Value, frozen=True, kw_only=True):
    """A started sbatch process; `note` is called before each start."""

    sbatch: Sbatch
    note: Callable[[], None]
    executor: ScriptExecutor
    process: Popen[bytes] | Finished


def start_sbatch(sbatch: Sbatch, note: Callable[[], None]) -> Call:
    """Start an sbatch."""
    executor = _executor(sbatch)
    # Immediately before: after a kill in between, the state of the run is unknown for two minutes.
    note()
    return Call(sbatch=sbatch, note=note, executor=executor, process=executor.start())


def await_job_id(call: Call) -> str:
    """Return the id of the job that a call created, repeating the call if necessary.

    If the answer is lost, the queue is searched for the job's comment before the request is
    repeated, after a delay in which Slurm can complete a pending request.

    Raises:
        SubmitError: refused; `transient` if it is unknown whether the job was accepted.
    """
    sbatch, process, failure = call.sbatch, call.process, ""
    for pause_s in (*_PAUSES_S, None):
        try:
            return call.executor.job(process).job_id
        except SubmitError as refusal:
            failure, unreadable = refusal.message, refusal.transient
        if not unreadable and not transient(failure):
            raise SubmitError(f"sbatch: {_line(failure)}", _advice(sbatch, failure))
        if pause_s is None:
            break
        job, no_answer = _search_job(sbatch, _delay(failure, pause_s))
        if job is not None:
            return job
        if no_answer or unreadable:
            break
        call.note()
        process = call.executor.start()
    message = f"sbatch was not answered: {_line(failure)}"
    hint = "hpctrain status finds the job if it was accepted; submit again later"
    raise SubmitError(message, hint, transient=True)


def _advice(sbatch: Sbatch, failure: str) -> str:
    excluded = ", ".join(sbatch.executor_options.exclude)
    if excluded and "node" in failure.lower():
        return f"without {excluded} there may be too few nodes"
    return advice(failure)


def _delay(failure: str, pause_s: float) -> float:
    """Return the delay, and log it: a request that reached Slurm may be in progress."""
    if not any(words in failure.lower() for words in _NOT_REACHED):
        pause_s = max(pause_s, _UNDER_WAY_S)
    logging.getLogger(__name__).warning(
        "Slurm does not answer (%s); trying again in %.0f s", _line(failure), pause_s
    )
    return pause_s


def _search_job(sbatch: Sbatch, pause_s: float) -> tuple[str | None, bool]:
    """Wait, then search for the job; return whether Slurm never responded."""
    cluster = sbatch.executor_options.cluster
    for further_s in (0.0, *_PAUSES_S):
        time.sleep(pause_s + further_s)
        jobs, no_answer = find(cluster, sbatch.comment, owner(sbatch.batch.runs[0].path))
        if not no_answer:
            if len(jobs) > 1:
                # The request was accepted late, and repeated: cancel one of the two jobs.
                call_slurm(cluster, "scancel", *jobs[1:])
            return (jobs[0] if jobs else None), False
    return None, True


def _executor(sbatch: Sbatch) -> ScriptExecutor:
    # The import takes 90 ms, which a query does not need.
    from hpc_train.submissions.slurm.submitit_script import ScriptExecutor

    batch = sbatch.batch
    return ScriptExecutor(
        batch.runs[0].path,
        batch.script,
        sbatch.options,
        batch.arguments,
        environment_changes(os.environ, sbatch.executor_options.cluster, options_in(batch.text)),
    )


def _line(text: str) -> str:
    """Return the message of sbatch on one line, without the prefix of each part."""
    return "; ".join(
        line.removeprefix("sbatch: error: ").strip() for line in text.splitlines() if line.strip()
    )


_NAMED = re.compile(r"(?<![\w-])--([a-z][a-z-]*[a-z])")
_LETTER = re.compile(r"(?:requires an argument|invalid option) -- '(\w)'")
_HELP = re.compile(r"(?<!\S)\S{0,64} ?--help\S{0,64}|--\w{1,64}=help")


class _File(Value, frozen=True, kw_only=True):
    schema: Literal[1]
    refusals: dict[str, Refusal]


@cache
def known_refusals() -> dict[str, Refusal]:
    """Return the table: a part of a message, in lower case, and what it means."""
    return load_data("slurm_refusals.yaml", _File).refusals


def refusal_of(message: str) -> Refusal | None:
    """Return the first known refusal in a message; None for an unknown message.

    Where the table has no options, they are those that the message itself names.
    """
    lowercase = message.lower()
    found = next((one for words, one in known_refusals().items() if words in lowercase), None)
    if found is None or found.options:
        return found
    return replace(found, options=named_options(message))


def named_options(message: str) -> tuple[str, ...]:
    """Return the options that a message of sbatch names, by their long names if it knows them."""
    letters = [sbatch_grammar().short.get(letter, letter) for letter in _LETTER.findall(message)]
    names = _NAMED.findall(_HELP.sub("", message))
    return tuple(dict.fromkeys((*names, *letters)))


def advice(message: str) -> str:
    """Return the next command, or an empty text for an unknown message."""
    found = refusal_of(message)
    return found.advice if found else ""
