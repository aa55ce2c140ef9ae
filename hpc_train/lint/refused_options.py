"""The options and the line of a script that a refusal of Slurm is about, and its explanation."""

from __future__ import annotations

import re
from collections.abc import Iterable

from hpc_train.lint.allowed_by_slurm import Allowed, allowed, unusable_nodes, value_of
from hpc_train.lint.job_script import JobScript
from hpc_train.lint.option_parser import Option
from hpc_train.model.finding import LintFinding
from hpc_train.model.slurm_answer import SlurmAnswer

REFUSED = "HT801"
_NAME = re.compile(r"(?<![\w-])--([a-z][a-z-]*[a-z])")


def explain(script: JobScript, answer: SlurmAnswer) -> tuple[int, str]:
    """Return the line of the directive and the advice; line 1 if no directive is known."""
    if answer.refusal is None:
        return line_of(script, answer, answer.words), ""
    given = _given(script, answer.refusal.options)
    facts = {one.name: allowed(one.name, script.asked, answer) for one in given}
    wrong = [one for one in given if (fact := facts[one.name]) and fact.exceeded]
    line = wrong[0].line if wrong else line_of(script, answer)
    parts = [answer.refusal.meaning, _place(wrong or given, len(given)), _variables(script, answer)]
    parts += [unusable_nodes(script.asked, answer)] if not wrong else []
    parts += _texts(facts[one.name] for one in (wrong or given))
    if not given:
        parts += _texts(allowed(name, script.asked, answer) for name in answer.refusal.options)
    return line, "; ".join(dict.fromkeys(filter(None, (*parts, answer.refusal.advice))))


def line_of(script: JobScript, answer: SlurmAnswer, words: str = "") -> int:
    """Return the line of the options that a message names or its refusal is about, or 1."""
    if answer.line:
        return answer.line
    if answer.stray:
        stray = [one.line for one in script.directives if answer.stray in one.stray]
        return stray[-1] if stray else 1
    known = answer.refusal.options if answer.refusal else ()
    given = _given(script, _NAME.findall(words) or known)
    return given[0].line if given else 1


def without_repetition(
    findings: Iterable[LintFinding], answer: SlurmAnswer | None
) -> tuple[LintFinding, ...]:
    """Leave the refusal out where an error of a rule has said the same of the same line."""
    findings = tuple(findings)
    same = answer.refusal.same if answer and answer.refusal else ()
    said = {one.line for one in findings if same and one.severity == "error" and _in(one, same)}
    return tuple(one for one in findings if one.id != REFUSED or one.line not in said)


def _in(finding: LintFinding, same: tuple[str, ...]) -> bool:
    return finding.id.startswith(same) and finding.id != REFUSED


def _given(script: JobScript, names: Iterable[str]) -> list[Option]:
    """Return the effective options of these names, or those of all heterogeneous components."""
    options = [o for one in script.directives if not one.late for o in one.options]
    if not any(one.group for one in script.directives):
        options = list({option.name: option for option in options}.values())
    return [option for name in names for option in options if option.name == name]


def _place(options: list[Option], given: int) -> str:
    """Name the options if there is a choice."""
    if given < 2:
        return ""
    shown = [f"{one.spelled}{_value(one)} (line {one.line})" for one in options]
    return f"it is about {' or '.join(dict.fromkeys(shown))}" if shown else ""


def _value(option: Option) -> str:
    return (
        f"{'=' if option.spelled.startswith('--') else ' '}{option.value}" if option.value else ""
    )


def _variables(script: JobScript, answer: SlurmAnswer) -> str:
    options = answer.refusal.options if answer.refusal else ()
    effective = [v for v in answer.variables if v.option in options and not v.removed]
    return " and ".join(
        f"{one.name}={one.value} of this shell sets --{one.option}"
        for one in effective
        if value_of(one.option, script.asked, answer) == one.value
    )


def _texts(facts: Iterable[Allowed | None]) -> list[str]:
    return [fact.text for fact in facts if fact]
