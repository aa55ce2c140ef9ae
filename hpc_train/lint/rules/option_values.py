"""Rules on the values of options in directives: what sbatch refuses."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from hpc_train.lint.directives import Directive
from hpc_train.lint.option_parser import Option
from hpc_train.lint.option_values import RefusedValue, ValueForm, refused_value, value_forms
from hpc_train.lint.rule import RuleHit, Subject, rule
from hpc_train.slurm_options import Grammar, sbatch_grammar

_AROUND_EQUALS = re.compile(r"--[a-z-]{1,40}(\s+=|=\s+[^\s-])")


def _options(subject: Subject) -> Iterator[Option]:
    """Yield the known options of directives that sbatch reads and can split."""
    for directive in subject.script.live_directives:
        if not directive.unclosed and not _is_cut(directive):
            yield from (option for option in directive.options if option.known)


def _is_cut(directive: Directive) -> bool:
    """Whether whitespace beside a `=` cuts a value off, which another rule reports."""
    return bool(_AROUND_EQUALS.search(directive.text))


@rule(
    "HT020",
    "error",
    "value that sbatch refuses",
    why="sbatch checks these values when it reads them and refuses the job; it silently ignores "
    "an unknown word in a list of mail types.",
    advice="write one of the allowed values; `man sbatch` explains them",
)
def refused(subject: Subject) -> Iterator[RuleHit]:
    for option in _options(subject):
        yield from refusals(option, "sbatch", value_forms())


def refusals(option: Option, program: str, forms: Mapping[str, ValueForm]) -> Iterator[RuleHit]:
    """Yield the hit of an option whose value `program` refuses or ignores."""
    value = option.value
    if value is None or (value == "" and option.name not in forms):
        return
    if not option.spelled.startswith("--") and value.startswith("="):
        return
    wrong = refused_value(option.name, value, forms)
    if wrong:
        yield RuleHit(
            line=option.line,
            message=_message(option, value, wrong, program),
            advice=f"allowed: {wrong.allowed}",
            severity="warning" if wrong.ignored else None,
        )


def _message(option: Option, value: str, wrong: RefusedValue, program: str) -> str:
    gap = "=" if option.spelled.startswith("--") else " "
    does = f"ignores {wrong.part}" if wrong.ignored else f"refuses {wrong.part!r}"
    # A word that lacks its list, `map_cpu:`, is the nearest to itself.
    meant = "" if wrong.nearest == wrong.part else wrong.nearest
    hint = f"; did you mean {meant}?" if meant else ""
    return f"{option.spelled}{gap}{value}: {program} {does}{hint}"


@rule(
    "HT021",
    "error",
    "option without its value, or with one that it does not take",
    why="sbatch refuses a job if an option has no value although it needs one, or has one although "
    "it takes none.",
    advice="write --option=value, or the bare option; `sbatch --help` lists both kinds",
)
def missing_value(subject: Subject) -> Iterator[RuleHit]:
    for option in _options(subject):
        yield from missing_or_extra(option, "sbatch", sbatch_grammar())


def missing_or_extra(option: Option, program: str, grammar: Grammar) -> Iterator[RuleHit]:
    """Yield the hit of an option without its value, or with one that it does not take."""
    kind = grammar.long.get(option.name)
    if kind == "=" and option.value is None:
        yield RuleHit(
            line=option.line,
            message=f"{option.spelled} needs a value",
            advice=f"write --{option.name}=VALUE",
        )
    elif kind == "" and option.value is not None and option.spelled.startswith("--"):
        # Options of a plug-in may change.
        if not re.match(r"(no-)?container-", option.name):
            message = f"{option.spelled} takes no value: {program} refuses {option.value!r}"
            yield RuleHit(line=option.line, message=message, advice=f"write --{option.name}")


@rule(
    "HT022",
    "error",
    "ambiguous option in a directive",
    why="sbatch completes the beginning of a name if it fits one option only, and otherwise "
    "refuses the job.",
    advice="write the whole name",
)
def ambiguous(subject: Subject) -> Iterator[RuleHit]:
    for directive in subject.script.live_directives:
        for option in directive.options:
            yield from ambiguities(option)


def ambiguities(option: Option) -> Iterator[RuleHit]:
    """Yield the hit of an ambiguous prefix."""
    if option.ambiguous:
        names = ", ".join(f"--{name}" for name in option.ambiguous)
        yield RuleHit(line=option.line, message=f"{option.spelled} is ambiguous: {names}")
