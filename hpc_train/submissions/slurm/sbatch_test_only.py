"""`sbatch --test-only`: Slurm judges a script and submits nothing; a job id is used up."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Mapping
from pathlib import Path

from hpc_train.model.slurm_answer import ShellVariable, SlurmAnswer
from hpc_train.model.submission import SlurmEndpoint
from hpc_train.submissions.slurm.sbatch import advice, refusal_of
from hpc_train.submissions.slurm.sbatch_environment import (
    environment_changes,
    option_of,
    options_in,
)
from hpc_train.submissions.slurm.slurm_commands import transient, unreadable_conf
from hpc_train.subprocesses import Finished, run

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
# 26.05 prints a stray word: `to start at TIME a using 4 processors`.
_STRAY_WORD = re.compile(r"(\bto start at \S{1,40}) a (?=using )")
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
        return _accepted(done)
    silent = next(filter(_is_silent, lines), "")
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


def shell_variables(
    environment: Mapping[str, str], options: Collection[str]
) -> tuple[ShellVariable, ...]:
    """Return the variables that set options of sbatch, and whether a submission removes them."""
    changes = environment_changes(environment, SlurmEndpoint(), options)
    found = [(name, option_of(name)) for name in sorted(environment)]
    return tuple(
        ShellVariable(name=name, value=environment[name], option=option, removed=name in changes)
        for name, option in found
        if option is not None and (name not in changes or option in options)
    )


def _accepted(done: Finished) -> SlurmAnswer:
    lines = done.stderr.splitlines()
    plan = next((match[1] for match in map(_PLAN.search, _lines(done)) if match), "")
    warnings = [line for line in lines if line.startswith(_ACCEPTED_WITH_ERROR)]
    return SlurmAnswer(
        outcome="accepted",
        words=plan or "; ".join(_lines(done)),
        warnings=tuple(line.removeprefix(_ACCEPTED_WITH_ERROR) for line in warnings),
    )


def _is_silent(line: str) -> bool:
    return any(words in line.lower() for words in _NO_SLURM)


def _lines(done: Finished) -> list[str]:
    lines = _STRAY_WORD.sub(r"\1 ", done.stderr + done.stdout).strip().splitlines()
    bare = [line.removeprefix("sbatch: ").removeprefix("error: ") for line in lines]
    return [line for line in bare if line and not line.startswith('Try "sbatch --help"')]
