"""Calls of sbatch: job arrays, a submission, a test; submitit's executor with a rendered script."""

import os
import re
from collections import defaultdict
from collections.abc import Collection, Sequence
from pathlib import Path

from hpc_train.base.errors import SubmitError
from hpc_train.base.files import read_regular
from hpc_train.base.processes import Finished, run
from hpc_train.base.slurm_options import advice, refusal_of
from hpc_train.runs.batch_executor import Called, JobCall
from hpc_train.runs.executor import ExecutorOptions
from hpc_train.runs.run import RunFolder, RunName, SlurmEndpoint
from hpc_train.slurm.live_cluster import SlurmAnswer
from hpc_train.slurm.slurm_commands import (
    as_arguments,
    environment_changes,
    options_in,
    transient,
    unreadable_conf,
)


class SbatchCall(JobCall, frozen=True, kw_only=True):
    """One submission: the script (the file and its text), its log, and its arguments."""

    script: Path
    text: str
    output: str
    arguments: tuple[str, ...]

    def command(self, options: ExecutorOptions, comment: str) -> tuple[str, ...]:
        """Return the command as typed in a shell, with what belongs to this submission only."""
        words = [f"--output={self.output}", f"--comment={comment}"]
        if self.elements:
            most = options.limits.max_array_running
            share = f"%{most}" if most else ""
            words.append(f"--array={','.join(map(str, self.elements))}{share}")
        if options.exclude:
            words.append(f"--exclude={','.join(options.exclude)}")
        return ("sbatch", *words, str(self.script), *self.arguments)


def call_sbatch(call: SbatchCall, command: Sequence[str], options: ExecutorOptions) -> Called:
    """Call sbatch once.

    Raises:
        SubmitError: refused.
    """
    # The import takes 90 ms, which a query does not need.
    from hpc_train.slurm.submitit_script import submit_script

    changes = environment_changes(os.environ, options.cluster, options_in(call.text))
    try:
        return Called(submit_script([*as_arguments(changes), *command], call.text))
    except SubmitError as failure:
        lines = (line.removeprefix("sbatch: error: ") for line in failure.message.splitlines())
        message = "; ".join(line.strip() for line in lines if line.strip())
        if failure.transient or transient(failure.message):
            return Called("", message, accepted=failure.transient)
        excluded = ", ".join(options.exclude)
        hint = advice(failure.message)
        if excluded and "node" in message.lower():
            hint = f"without {excluded} there may be too few nodes"
        raise SubmitError(f"sbatch: {message}", hint) from None


def batches(runs: Sequence[RunFolder], array_size: int) -> tuple[SbatchCall, ...]:
    """Combine the repetitions of a point into an array, up to the largest allowed index.

    `array_size` is Slurm's MaxArraySize: the largest number plus one; 0 where there are no arrays.
    Runs share an array only if their scripts are byte-identical.
    """
    groups: dict[tuple[str, str, str], list[RunFolder]] = defaultdict(list)
    for one in runs:
        name = RunName.parse(one.run_id)
        fits = name is not None and name.repetition < array_size
        point = (name.stem, name.ending) if name and fits else (one.run_id, "")
        groups[point[0], point[1], read_regular(one.script).decode()].append(one)
    return tuple(_batch(group, text) for (_, _, text), group in groups.items())


def allocation(home: Path, runs: Sequence[RunFolder], script: Path, text: str) -> SbatchCall:
    """Return the job that runs all of them, one after the other."""
    return SbatchCall(
        runs=tuple(runs),
        script=script.absolute(),
        text=text,
        output=_plain(str(script.with_suffix(".out").absolute())),
        arguments=(str(home.absolute()),),
        shared=True,
    )


def _batch(runs: Sequence[RunFolder], text: str) -> SbatchCall:
    first = runs[0]
    folder = str(first.path.absolute())
    name = RunName.parse(first.run_id)
    if len(runs) == 1 or name is None:
        return SbatchCall(
            runs=tuple(runs),
            script=first.script.absolute(),
            text=text,
            output=_plain(f"{folder}/logs/job.out"),
            arguments=(folder,),
        )
    before = folder.removesuffix(f"{name.repetition}{name.ending}")
    elements = sorted(found.repetition for run in runs if (found := RunName.parse(run.run_id)))
    return SbatchCall(
        runs=tuple(runs),
        script=first.script.absolute(),
        text=text,
        output=f"{_plain(before)}%a{_plain(name.ending)}/logs/job.out",
        arguments=(before, name.ending),
        elements=tuple(elements),
    )


def _plain(text: str) -> str:
    """Escape a path, so that sbatch does not expand it (man sbatch, filename pattern)."""
    return text.replace("%", "%%")


_TIMEOUT_S = 30.0
_PLAN = re.compile(r"Job \d+ (to start at .*)")
_ACCEPTED_WITH_ERROR = "sbatch: error: "
_LINE = re.compile(r": line (\d{1,6}): ")
_STRAY = re.compile(r"Invalid directive found in batch script: (\S+)")
# Messages without a judgement of the controller: sbatch cannot find or read its configuration,
# cannot reach the controller, or does not understand it (strings of libslurm).
_NO_SLURM = (
    "configuration source",
    "cannot stat file",
    "unable to process configuration",
    "unable to contact slurm controller",
    "zero bytes were transmitted or received",
    "incompatible versions of client and server",
    "protocol version",
    "unexpected message received",
    "header lengths are longer than data received",
    "insane message length",
    "protocol authentication error",
    "invalid authentication credential",
)
_ENDED = {124, 125, 127}


def ask_sbatch(cluster: SlurmEndpoint, script: Path, options: Collection[str]) -> Finished:
    """Run `sbatch --test-only` in the environment of a submission.

    An effective SBATCH_… variable may be the reason for a refusal. Those for one of `options`,
    which the script sets, are removed.
    """
    changes = environment_changes(os.environ, cluster, options)
    # The remedies are found from sbatch's messages in English.
    changed = {**os.environ, **changes, "LC_ALL": "C"}
    environment = {name: value for name, value in changed.items() if value is not None}
    refused = unreadable_conf(environment)
    if refused:
        return Finished(returncode=127, stdout="", stderr=refused)
    return run(["sbatch", "--test-only", str(script)], _TIMEOUT_S, environment=environment)


def test_only(cluster: SlurmEndpoint, script: Path) -> str:
    """Return the message of sbatch on one line, and the remedy if it refuses."""
    done = ask_sbatch(cluster, script, options_in(script.read_text(encoding="utf-8")))
    words = "; ".join(_lines(done))
    if done.returncode == 0:
        return words
    hint = advice(words)
    return f"refused: {words}" + (f" ({hint})" if hint else "")


def answer_of(done: Finished) -> SlurmAnswer:
    """Return the meaning of sbatch's output."""
    lines = _lines(done)
    words = "; ".join(lines) or f"exit code {done.returncode}"
    if done.returncode in _ENDED or transient(done.stderr):
        return SlurmAnswer(outcome="unanswered", words=lines[-1] if lines else words)
    if done.returncode == 0:
        plan = next((match[1] for match in map(_PLAN.search, lines) if match), "")
        errors = [one for one in done.stderr.splitlines() if one.startswith(_ACCEPTED_WITH_ERROR)]
        warnings = tuple(one.removeprefix(_ACCEPTED_WITH_ERROR) for one in errors)
        text = plan or "; ".join(lines)
        return SlurmAnswer(outcome="accepted", words=text, warnings=warnings)
    silent = next((one for one in lines if any(words in one.lower() for words in _NO_SLURM)), "")
    # After such a message another controller may have answered.
    if silent and refusal_of(words) is None:
        return SlurmAnswer(outcome="unanswered", words=silent)
    line, stray = _LINE.search(words), _STRAY.search(words)
    return SlurmAnswer(
        outcome="refused",
        words=words,
        refusal=refusal_of(words),
        line=int(line[1]) if line else 0,
        stray=stray[1] if stray else "",
    )


def _lines(done: Finished) -> list[str]:
    lines = (done.stderr + done.stdout).strip().splitlines()
    bare = [line.removeprefix("sbatch: ").removeprefix("error: ") for line in lines]
    return [line for line in bare if line and not line.startswith('Try "sbatch --help"')]
