"""Rules on the answer of `sbatch --test-only`; without an answer (`--ask`) they find nothing."""

from __future__ import annotations

from collections.abc import Iterator

from hpc_train.lint.refused_options import explain, line_of
from hpc_train.lint.rule import RuleHit, Subject, rule

_UNKNOWN = "hpctrain does not know this message; ask the site (`sbatch --test-only` repeats it)"


@rule(
    "HT801",
    "error",
    "Slurm refuses the script (--ask)",
    why="`sbatch --test-only` refuses the script; a submission would be refused in the same way.",
    advice="follow the explanation of the message",
)
def refused(subject: Subject) -> Iterator[RuleHit]:
    script, answer = subject.script, subject.context.answer
    if answer is None or answer.outcome != "refused":
        return
    line, advice = explain(script, answer)
    message = f"Slurm refuses {answer.subject}: {_plain(answer.words)}"
    yield RuleHit(line=line, message=message, advice=advice or _UNKNOWN)


@rule(
    "HT802",
    "info",
    "Slurm accepts the script (--ask)",
    why="`sbatch --test-only` accepts the script. The time and the nodes are those that Slurm "
    "would choose now. An error that sbatch prints although it accepts the script is a warning.",
    advice="submit it; until then other jobs may change the time and the nodes",
)
def accepted(subject: Subject) -> Iterator[RuleHit]:
    script, answer = subject.script, subject.context.answer
    if answer is None or answer.outcome != "accepted":
        return
    plan = f", {_plain(answer.words)}" if answer.words else ""
    yield RuleHit(line=1, message=f"Slurm accepts {answer.subject}{plan}")
    for words in answer.warnings:
        message = f"Slurm accepts {answer.subject}, but says: {_plain(words)}"
        advice = "leave the option out, or ask the site"
        line = line_of(script, answer, words)
        yield RuleHit(line=line, message=message, advice=advice, severity="warning")


@rule(
    "HT803",
    "info",
    "no answer from Slurm (--ask)",
    why="`sbatch --test-only` had no answer, so it is not known whether Slurm accepts the script.",
    advice="check with sinfo whether Slurm answers this version of its commands (`sbatch "
    "--version`), and try again",
)
def unanswered(subject: Subject) -> Iterator[RuleHit]:
    answer = subject.context.answer
    if answer is not None and answer.outcome == "unanswered":
        yield RuleHit(line=1, message=f"{answer.subject} was not judged: {_plain(answer.words)}")


@rule(
    "HT804",
    "info",
    "variable of this shell that changes the submission (--ask)",
    why="sbatch reads options from variables SBATCH_…, which take precedence over directives, and "
    "a job that is submitted in another job inherits its variables. The question to Slurm was "
    "asked as `hpctrain submit` would: without variables that contradict the script, and without "
    "those of an outer job.",
    advice="unset the variable before sbatch",
)
def shell_variable(subject: Subject) -> Iterator[RuleHit]:
    script, answer = subject.script, subject.context.answer
    if answer is None:
        return
    for one in answer.variables:
        text = f"{one.name}={_plain(one.value)} of this shell"
        if one.removed:
            line = script.asked.line(one.option)
            message = f"{text} was ignored here, but sbatch would use it instead of --{one.option}"
            yield RuleHit(line=line, message=message, severity="warning")
        else:
            yield RuleHit(line=1, message=f"{text} is effective as --{one.option}")
    if answer.outer_job:
        message = f"this shell is in job {answer.outer_job}, whose variables were removed here"
        yield RuleHit(line=1, message=message, advice="submit from a shell outside any job")


def _plain(text: str) -> str:
    return "".join(c if c.isprintable() else "?" for c in text)
