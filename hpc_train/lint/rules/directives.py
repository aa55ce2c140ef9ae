"""Rules on single directives: syntax, names, values, versions."""

from __future__ import annotations

import difflib
import re
import shlex
from collections.abc import Collection, Iterator, Mapping
from typing import TYPE_CHECKING

from hpc_train.base.slurm_options import Grammar, sbatch_grammar
from hpc_train.base.values import Severity, slurm_seconds
from hpc_train.lint.directives import (
    Option,
    ValueForm,
    is_placeholder,
    is_unknown,
    plugin_of,
    refused_value,
    value_forms,
    with_plugins,
)
from hpc_train.lint.rule import Edit, RuleHit, Subject, rule
from hpc_train.plans.explanations import missing_option, unavailable_value

if TYPE_CHECKING:
    from hpc_train.sites.profile import SiteProfile

_VARIABLE = re.compile(r"\$\{?[A-Za-z_]\w*\}?|\$\(|`")
_AROUND_EQUALS = re.compile(r"(--[a-z-]{1,40})(\s+=\s*|=\s+)(?=[^\s-])")
# A second value of these options is added to the first.
_ADDED = ("mail-type", "verbose", "quiet", "container-mounts", "container-env")
# Options of other schedulers, and ambiguous prefixes.
_MEANT = {
    "walltime": "time",
    "memory": "mem",
    "queue": "partition",
    "gpu": "gpus-per-node",
    "cpus": "cpus-per-task",
    "ncpus": "cpus-per-task",
    "name": "job-name",
    "email": "mail-user",
}
_NUMBER_BEHIND = re.compile(r"([a-z-]{3,30})(\d.{0,80})")
# sbatch accepts any text for these.
_ANY_TEXT = ("job-name", "output", "error", "input", "chdir")


def _options(subject: Subject) -> Iterator[Option]:
    for directive in subject.script.live_directives:
        yield from directive.options


@rule(
    "HT010",
    "error",
    "variable in a directive",
    advice="write the value, use sbatch's own patterns (%j, %x, %u, %A_%a) in file names, or "
    "give the option on the command line: sbatch --nodes=$N job.sh",
)
def variable_in_directive(subject: Subject) -> Iterator[RuleHit]:
    for option in _options(subject):
        value = option.value or ""
        found = _VARIABLE.search(value)
        if found and option.name != "comment":
            name = value[found.start() :] if found[0] in ("$(", "`") else found[0]
            yield RuleHit(option.line, f"{option.spelled}: sbatch does not expand {name}")
        elif value.startswith("~") and option.name in ("output", "error", "input", "chdir"):
            yield RuleHit(option.line, f"{option.spelled}: sbatch does not expand ~")


@rule(
    "HT011",
    "error",
    "whitespace around = in a directive",
    advice="write --option=value without whitespace",
    fixable=True,
)
def blank_around_equals(subject: Subject) -> Iterator[RuleHit]:
    for directive in subject.script.live_directives:
        for match in _AROUND_EQUALS.finditer(directive.text.partition("#")[0]):
            edit = Edit(line=directive.line, before=match[0], after=f"{match[1]}=")
            yield RuleHit(directive.line, f"whitespace beside the = of {match[1]}", edit=edit)


@rule(
    "HT012",
    "error",
    "unterminated quote in a directive",
    advice="close the quote on the same line; a directive cannot continue on the next line",
)
def unclosed_quote(subject: Subject) -> Iterator[RuleHit]:
    for directive in subject.script.live_directives:
        if directive.unclosed:
            yield RuleHit(directive.line, f"the {directive.unclosed} is never closed")


@rule(
    "HT013",
    "warning",
    "unknown or ambiguous option in a directive",
    advice="write the whole name; `sbatch --help` lists all options, including those of the site's "
    "plug-ins, which a site profile declares in plugin_options",
)
def unknown_option(subject: Subject) -> Iterator[RuleHit]:
    known = with_plugins(sbatch_grammar(), subject.context.site).long
    for option in _options(subject):
        yield from unknown_names(option, known, subject.context.site)


def unknown_names(
    option: Option, known: Collection[str], site: SiteProfile | None
) -> Iterator[RuleHit]:
    """Yield the hit of an option that is ambiguous, not in `known`, or that a plug-in defines."""
    if option.ambiguous:
        names = ", ".join(f"--{name}" for name in option.ambiguous)
        yield RuleHit(option.line, f"{option.spelled} is ambiguous: {names}", severity="error")
    name = option.spelled.lstrip("-")
    plugin = plugin_of(option.name, site)
    if plugin:
        message = f"--{name} is an option of a plug-in, {plugin}, that not every site has"
        yield RuleHit(option.line, message, severity="info")
    if option.known or option.ambiguous or is_placeholder(option.spelled):
        return
    if option.spelled.startswith("--"):
        near = _MEANT.get(name) or _near(name, known)
        hint = f"; did you mean --{near}?" if near else ""
        # A name that resembles none may belong to a plug-in of the site.
        severity: Severity | None = None if near else "info"
        yield RuleHit(option.line, f"unknown option --{name}{hint}", severity=severity)
    else:
        word = option.word.text if option.word else option.spelled
        long = word[1:].partition("=")[0] in known
        hint = f"; did you mean -{word}?" if long else ""
        # A plug-in adds no letters.
        yield RuleHit(option.line, f"unknown option {option.spelled}{hint}", severity="error")


def _near(name: str, known: Collection[str]) -> str:
    """Return the option that a name resembles; `array1-5` is one without its `=`."""
    joined = _NUMBER_BEHIND.fullmatch(name)
    if joined and joined[1] in known:
        return f"{joined[1]}={joined[2]}"
    return next(iter(difflib.get_close_matches(name.lower(), known, 1, 0.8)), "")


@rule(
    "HT014",
    "error",
    "word without an option in a directive",
    advice="write --option=value; quote a value that contains whitespace",
)
def stray_word(subject: Subject) -> Iterator[RuleHit]:
    for directive in subject.script.live_directives:
        if _AROUND_EQUALS.search(directive.text) or directive.unclosed:
            continue
        for word in directive.stray[:1]:
            if not is_placeholder(word) and not re.match(r"[\u2010-\u2015\u2212]", word):
                near = word.partition("=")[0] in sbatch_grammar().long
                hint = f"; did you mean --{word}?" if near else ""
                yield RuleHit(directive.line, f"{word!r} is not part of an option{hint}")


@rule(
    "HT015",
    "error",
    "= after a one-letter option",
    advice="leave the = out, or write the long name of the option",
)
def equals_after_letter(subject: Subject) -> Iterator[RuleHit]:
    for option in _options(subject):
        if not option.spelled.startswith("--") and (option.value or "").startswith("="):
            if sbatch_grammar().short.get(option.spelled[1:]):
                letter, value = option.spelled, shlex.quote((option.value or "")[1:] or "VALUE")
                severity: Severity | None = "warning" if option.name in _ANY_TEXT else None
                yield RuleHit(
                    option.line,
                    f"{letter}{option.value}: the value of {letter} begins with the =",
                    severity=severity,
                    advice=f"write {letter} {value}, {letter}{value} or --{option.name}={value}",
                )


@rule("HT016", "warning", "option given twice", advice="keep one")
def given_twice(subject: Subject) -> Iterator[RuleHit]:
    seen: dict[tuple[int, str], Option] = {}
    for directive in subject.script.live_directives:
        for option in directive.options:
            before = seen.get((directive.group, option.name))
            seen[directive.group, option.name] = option
            if option.name in _ADDED or not option.known:
                continue
            if before and before.value != option.value:
                message = (
                    f"--{option.name}={option.value} replaces the {before.value} of line "
                    f"{before.line}"
                )
                yield RuleHit(option.line, message)


@rule(
    "HT018", "info", "time in minutes", advice="write hours:minutes:seconds, e.g. --time=24:00:00"
)
def time_in_minutes(subject: Subject) -> Iterator[RuleHit]:
    for option in _options(subject):
        match = re.fullmatch(r"(\d{1,9})(:00)?", option.value or "")
        if option.name == "time" and match and 0 < int(match[1]) <= 72:
            yield RuleHit(option.line, f"{match[0]} is {int(match[1])} minutes")


@rule(
    "HT020",
    "error",
    "value that sbatch refuses, or an option without its value",
    advice="write one of the allowed values; `man sbatch` explains them",
)
def refused(subject: Subject) -> Iterator[RuleHit]:
    for directive in subject.script.live_directives:
        # Another rule reports whitespace beside a `=`, which cuts a value off.
        if not directive.unclosed and not _AROUND_EQUALS.search(directive.text):
            for option in (one for one in directive.options if one.known):
                yield from refusals(option, "sbatch", sbatch_grammar(), value_forms())


def refusals(
    option: Option, program: str, grammar: Grammar, forms: Mapping[str, ValueForm]
) -> Iterator[RuleHit]:
    """Yield the hit of an option without its value, or with one that `program` does not take."""
    value, spelled, line = option.value, option.spelled, option.line
    kind, long = grammar.long.get(option.name), spelled.startswith("--")
    if kind == "=" and value is None:
        yield RuleHit(line, f"{spelled} needs a value", advice=f"write --{option.name}=VALUE")
    # Options of a plug-in may change.
    plugin = re.match(r"(no-)?container-", option.name)
    if kind == "" and value is not None and long and not plugin:
        message = f"{spelled} takes no value: {program} refuses {value!r}"
        yield RuleHit(line, message, advice=f"write --{option.name}")
    if value is None or (value == "" and option.name not in forms):
        return
    if option.name in ("time", "time-min") and not is_unknown(value):
        time = value.lstrip("=")
        if slurm_seconds(time) is None and time.upper() not in ("INFINITE", "UNLIMITED", "-1"):
            message = f"{program} cannot parse {value!r} as a time"
            advice = "write hours:minutes:seconds, e.g. --time=04:00:00"
            yield RuleHit(line, message, advice=advice)
    wrong = refused_value(option.name, value, forms)
    # Another rule reports the = behind a letter.
    if wrong is None or (not long and value.startswith("=")):
        return
    does = f"ignores {wrong.part}" if wrong.ignored else f"refuses {wrong.part!r}"
    hint = f"; did you mean {wrong.nearest}?" if wrong.nearest else ""
    yield RuleHit(
        line,
        f"{spelled}{'=' if long else ' '}{value}: {program} {does}{hint}",
        advice=f"allowed: {wrong.allowed}",
        severity="warning" if wrong.ignored else None,
    )


@rule(
    "HT023",
    "warning",
    "option or value that this version of Slurm does not have",
    advice="leave it out, or write another value; hpctrain help slurm lists the versions",
)
def missing(subject: Subject) -> Iterator[RuleHit]:
    version = subject.context.slurm
    if version is None:
        return
    options = [
        ("sbatch", option) for one in subject.script.live_directives for option in one.options
    ]
    steps = (one for one in subject.script.launches if one.outer == "srun")
    options += [("srun", option) for step in steps for option in step.options]
    for program, option in options:
        value = option.value or ""
        why = missing_option(program, option.name, version) if option.known else ""
        if option.known and not why and not is_unknown(value):
            why = unavailable_value(option.name, value, version)
        if why:
            yield RuleHit(option.line, f"{why}; this is Slurm {version}")
