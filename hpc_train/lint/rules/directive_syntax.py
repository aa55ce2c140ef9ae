"""Rules on single directives: syntax, names and values."""

from __future__ import annotations

import difflib
import re
import shlex
from collections.abc import Collection, Iterator

from hpc_train.lint.option_parser import Option
from hpc_train.lint.placeholders import is_placeholder
from hpc_train.lint.plugin_options import plugin_of, with_plugins
from hpc_train.lint.rule import Edit, RuleHit, Subject, fixable, rule
from hpc_train.model.finding import Severity
from hpc_train.model.site import SiteProfile
from hpc_train.model.units import slurm_seconds
from hpc_train.slurm_options import sbatch_grammar

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
NO_LIMIT = ("INFINITE", "UNLIMITED", "-1")


def _options(subject: Subject) -> Iterator[Option]:
    for directive in subject.script.live_directives:
        yield from directive.options


@rule(
    "HT010",
    "error",
    "variable in a directive",
    why="sbatch reads directives before any shell runs, so $NAME and ~ are taken literally.",
    advice="write the value, use sbatch's own patterns (%j, %x, %u, %A_%a) in file names, or "
    "give the option on the command line: sbatch --nodes=$N job.sh",
)
def variable_in_directive(subject: Subject) -> Iterator[RuleHit]:
    for option in _options(subject):
        value = option.value or ""
        found = _VARIABLE.search(value)
        if found and option.name != "comment":
            name = value[found.start() :] if found[0] in ("$(", "`") else found[0]
            yield RuleHit(
                line=option.line, message=f"{option.spelled}: sbatch does not expand {name}"
            )
        elif value.startswith("~") and option.name in ("output", "error", "input", "chdir"):
            yield RuleHit(line=option.line, message=f"{option.spelled}: sbatch does not expand ~")


@fixable
@rule(
    "HT011",
    "error",
    "whitespace around = in a directive",
    why="sbatch splits directives at whitespace: the value becomes `=` or nothing, and the job "
    "is refused.",
    advice="write --option=value without whitespace",
)
def blank_around_equals(subject: Subject) -> Iterator[RuleHit]:
    for directive in subject.script.live_directives:
        for match in _AROUND_EQUALS.finditer(directive.text.partition("#")[0]):
            edit = Edit(line=directive.line, before=match[0], after=f"{match[1]}=")
            yield RuleHit(
                line=directive.line, message=f"whitespace beside the = of {match[1]}", edit=edit
            )


@rule(
    "HT012",
    "error",
    "unterminated quote in a directive",
    why="sbatch parses quotes as a shell does and rejects a directive with an unterminated quote.",
    advice="close the quote on the same line; a directive cannot continue on the next line",
)
def unclosed_quote(subject: Subject) -> Iterator[RuleHit]:
    for directive in subject.script.live_directives:
        if directive.unclosed:
            yield RuleHit(line=directive.line, message=f"the {directive.unclosed} is never closed")


@rule(
    "HT013",
    "warning",
    "unknown option in a directive",
    why="sbatch refuses a job with an option that neither Slurm nor a plug-in of the site defines.",
    advice="correct the name; `sbatch --help` lists all options, including those of the site's "
    "plug-ins, which a site profile declares in plugin_options",
)
def unknown_option(subject: Subject) -> Iterator[RuleHit]:
    known = with_plugins(sbatch_grammar(), subject.context.site).long
    for option in _options(subject):
        yield from unknown_names(option, known, subject.context.site)


def unknown_names(
    option: Option, known: Collection[str], site: SiteProfile | None
) -> Iterator[RuleHit]:
    """Yield the hit of an option that is not in `known`, or that a plug-in defines."""
    name = option.spelled.lstrip("-")
    plugin = plugin_of(option.name, site)
    if plugin:
        message = f"--{name} is an option of a plug-in, {plugin}, that not every site has"
        yield RuleHit(line=option.line, message=message, severity="info")
    if option.known or option.ambiguous or is_placeholder(option.spelled):
        return
    if option.spelled.startswith("--"):
        near = _MEANT.get(name) or _near(name, known)
        hint = f"; did you mean --{near}?" if near else ""
        # A name that resembles none may belong to a plug-in of the site.
        severity: Severity | None = None if near else "info"
        message = f"unknown option --{name}{hint}"
        yield RuleHit(line=option.line, message=message, severity=severity)
    else:
        word = option.word.text if option.word else option.spelled
        long = word[1:].partition("=")[0] in known
        hint = f"; did you mean -{word}?" if long else ""
        # A plug-in adds no letters.
        message = f"unknown option {option.spelled}{hint}"
        yield RuleHit(line=option.line, message=message, severity="error")


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
    why="sbatch refuses a directive with a word that belongs to no option: a forgotten --, "
    "or a value with whitespace.",
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
                yield RuleHit(
                    line=directive.line, message=f"{word!r} is not part of an option{hint}"
                )


@rule(
    "HT015",
    "error",
    "= after a one-letter option",
    why="The value of a one-letter option begins directly after the letter: -N=2 requests `=2` "
    "nodes, and sbatch refuses it; -J=name names the job `=name`.",
    advice="leave the = out, or write the long name of the option",
)
def equals_after_letter(subject: Subject) -> Iterator[RuleHit]:
    for option in _options(subject):
        if not option.spelled.startswith("--") and (option.value or "").startswith("="):
            if sbatch_grammar().short.get(option.spelled[1:]):
                letter, value = option.spelled, shlex.quote((option.value or "")[1:] or "VALUE")
                severity: Severity | None = "warning" if option.name in _ANY_TEXT else None
                yield RuleHit(
                    line=option.line,
                    message=f"{letter}{option.value}: the value of {letter} begins with the =",
                    severity=severity,
                    advice=f"write {letter} {value}, {letter}{value} or --{option.name}={value}",
                )


@rule(
    "HT016",
    "warning",
    "option given twice",
    why="sbatch silently uses the last value; the first value has no effect.",
    advice="keep one",
)
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
                yield RuleHit(line=option.line, message=message)


@rule(
    "HT017",
    "error",
    "time that sbatch cannot parse",
    why="sbatch accepts minutes, minutes:seconds, hours:minutes:seconds and days-hours[:…]; it "
    "refuses 4h or 1h30m.",
    advice="write hours:minutes:seconds, e.g. --time=04:00:00",
)
def unreadable_time(subject: Subject) -> Iterator[RuleHit]:
    for option in _options(subject):
        value = option.value or ""
        if option.name not in ("time", "time-min") or "$" in value or is_placeholder(value):
            continue
        if value:
            time = value.lstrip("=")
            if slurm_seconds(time) is None and time.upper() not in NO_LIMIT:
                yield RuleHit(line=option.line, message=f"sbatch cannot parse {value!r} as a time")


@rule(
    "HT018",
    "info",
    "time in minutes",
    why="A single number is minutes and two fields are minutes:seconds, so both --time=24 and "
    "--time=24:00 end a job after 24 minutes.",
    advice="write hours:minutes:seconds, e.g. --time=24:00:00",
)
def time_in_minutes(subject: Subject) -> Iterator[RuleHit]:
    for option in _options(subject):
        match = re.fullmatch(r"(\d{1,9})(:00)?", option.value or "")
        if option.name == "time" and match and 0 < int(match[1]) <= 72:
            yield RuleHit(line=option.line, message=f"{match[0]} is {int(match[1])} minutes")
