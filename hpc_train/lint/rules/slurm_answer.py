"""Rules on the answer of `sbatch --test-only`; without an answer (`--ask`) they find nothing."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from hpc_train.base.errors import nearest
from hpc_train.base.finding import LintFinding
from hpc_train.base.slurm_options import gres
from hpc_train.base.units import slurm_memory, slurm_seconds
from hpc_train.lint.directives import Option, RequestedResources
from hpc_train.lint.rule import RuleHit, Subject, rule
from hpc_train.lint.script import JobScript
from hpc_train.slurm.live_cluster import LiveNode, LivePartition, SlurmAnswer, SlurmFacts

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
    of_options = [facts[one.name] for one in (wrong or given)]
    if not given:
        of_options = [allowed(name, script.asked, answer) for name in answer.refusal.options]
    parts += [fact.text for fact in of_options if fact]
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
    said = {
        one.line
        for one in findings
        if same and one.severity == "error" and one.id.startswith(same) and one.id != REFUSED
    }
    return tuple(one for one in findings if one.id != REFUSED or one.line not in said)


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
    shown = []
    for one in options:
        value = f"{'=' if one.spelled.startswith('--') else ' '}{one.value}" if one.value else ""
        shown.append(f"{one.spelled}{value} (line {one.line})")
    return f"it is about {' or '.join(dict.fromkeys(shown))}" if shown else ""


def _variables(script: JobScript, answer: SlurmAnswer) -> str:
    options = answer.refusal.options if answer.refusal else ()
    effective = [v for v in answer.variables if v.option in options and not v.removed]
    return " and ".join(
        f"{one.name}={one.value} of this shell sets --{one.option}"
        for one in effective
        if value_of(one.option, script.asked, answer) == one.value
    )


_UNUSABLE = ("DOWN", "DRAIN", "FAIL", "UNKNOWN")
_MOST_NAMES = 12


class Allowed(NamedTuple):
    """What is allowed, as a text; `exceeded` if the script requests something else."""

    text: str
    exceeded: bool = False


class Request(NamedTuple):
    """The option that Slurm refuses, what else a script requests, and of which nodes."""

    option: str
    value: str
    asked: RequestedResources
    facts: SlurmFacts
    partitions: tuple[LivePartition, ...]
    nodes: tuple[LiveNode, ...]

    @property
    def place(self) -> str:
        """The names of the partitions."""
        return " and ".join(one.name for one in self.partitions)


def allowed(option: str, asked: RequestedResources, answer: SlurmAnswer) -> Allowed | None:
    """Return what Slurm allows for an option; None if it is not known."""
    partitions, nodes = _places(asked, answer)
    rule = _RULES.get(option)
    usable, value = tuple(filter(_usable, nodes)), value_of(option, asked, answer)
    return rule(Request(option, value, asked, answer.facts, partitions, usable)) if rule else None


def value_of(option: str, asked: RequestedResources, answer: SlurmAnswer) -> str:
    """Return the value of an option: the script's, or that of an effective variable."""
    effective = [v.value for v in answer.variables if v.option == option and not v.removed]
    return asked.value(option) or (effective[0] if effective and not asked.has(option) else "")


def _places(
    asked: RequestedResources, answer: SlurmAnswer
) -> tuple[tuple[LivePartition, ...], tuple[LiveNode, ...]]:
    """Return the partitions that a script requests, or the default one, and their nodes."""
    named = value_of("partition", asked, answer)
    partitions = tuple(
        one
        for one in answer.facts.partitions
        if (one.name in named.split(",") if named else one.default)
    )
    names = {one.name for one in partitions}
    return partitions, tuple(one for one in answer.facts.nodes if names & set(one.partitions))


def unusable_nodes(asked: RequestedResources, answer: SlurmAnswer) -> str:
    """Return why no node of the partition can be used; empty if some can."""
    partitions, nodes = _places(asked, answer)
    if not nodes or any(map(_usable, nodes)):
        return ""
    states = ", ".join(sorted({node.state for node in nodes}))
    names = " and ".join(sorted(one.name for one in partitions))
    return f"all {len(nodes)} nodes of {names} are unusable ({states})"


def _usable(node: LiveNode) -> bool:
    return not any(word in node.state for word in _UNUSABLE)


def _names(kind: str, given: str, names: Iterable[str]) -> Allowed | None:
    known = list(dict.fromkeys(names))
    if not known:
        return None
    unknown = [name for name in given.split(",") if name and name not in known]
    near = nearest(unknown[0], known) if unknown else ""
    shown = ", ".join(known[:_MOST_NAMES]) + (", …" if len(known) > _MOST_NAMES else "")
    return Allowed(f"{kind}: {shown}{near}", bool(unknown))


def _partition(request: Request) -> Allowed | None:
    names = [partition.name for partition in request.facts.partitions]
    found = _names("partitions", request.value, names)
    if found is None or found.exceeded:
        return found
    states = [f"{p.name} is {p.state}" for p in request.partitions if p.state not in ("", "UP")]
    return Allowed(", ".join(states), exceeded=True) if states else found


def _account(request: Request) -> Allowed | None:
    accounts = sorted(one.account for one in request.facts.associations)
    return _names("your accounts", request.value, accounts)


def _qos(request: Request) -> Allowed | None:
    qos = sorted(name for one in request.facts.associations for name in one.qos)
    return _names("your QOS", request.value, qos)


def _feature(request: Request) -> Allowed | None:
    features = sorted({name for node in request.nodes for name in node.features})
    if request.nodes and not features:
        return Allowed(f"the nodes of {request.place} have no features", exceeded=True)
    return _names("features", request.value, features)


def _nodelist(request: Request) -> Allowed | None:
    names = [node.name for node in request.facts.nodes]
    found = _names("nodes", "" if "[" in request.value else request.value, names)
    return found if found and found.exceeded else None


def _nodes(request: Request) -> Allowed | None:
    largest = max((p.largest for p in request.partitions if p.largest), default=None)
    least = min((p.min_nodes or 1 for p in request.partitions), default=1)
    wanted = request.asked.nodes
    if largest is None:
        return None
    bounds = f"{least} to {largest} nodes" if least > 1 else f"at most {largest} nodes"
    over = wanted is not None and not least <= wanted <= largest
    return Allowed(f"{request.place} allows {bounds}", over)


def _time(request: Request) -> Allowed | None:
    limits = [p.max_time for p in request.partitions]
    most = min((limit for limit in limits if limit), default=None)
    if most is None:
        return None
    wanted = slurm_seconds(request.value)
    over = wanted is not None and not 0 < wanted <= most
    return Allowed(f"{request.place} allows at most {most}", over)


def _memory(request: Request) -> Allowed | None:
    most = max((node.memory for node in request.nodes if node.memory), default=None)
    wanted = slurm_memory(request.value)
    over = most is not None and wanted is not None and wanted > most
    # A share of a core or GPU is compared with the whole.
    is_share = request.option != "mem"
    text = f"the nodes of {request.place} have at most {most}{' in all' * is_share}"
    return Allowed(text, over) if most and (over or not is_share) else None


def _cores(request: Request) -> Allowed | None:
    most = max((node.cpus for node in request.nodes), default=0)
    tasks, cpus = request.asked.tasks_per_node or 1, request.asked.cpus_per_task or 1
    own, other = (tasks, cpus) if request.option == "ntasks-per-node" else (cpus, tasks)
    wanted = own if own > most else own * other
    # A size that is too large alone is the reason, not the other one.
    over = wanted > most and (own > most or other <= most)
    text = f"the nodes of {request.place} have at most {most} cores"
    return Allowed(f"{text}, not {wanted}" if over else text, over) if most else None


def _tasks(request: Request) -> Allowed | None:
    most = max((node.cpus for node in request.nodes), default=0)
    total = sum(node.cpus for node in request.nodes)
    tasks, cpus = request.asked.tasks or 1, request.asked.cpus_per_task or 1
    text = f"the nodes of {request.place} have {total} cores together"
    return Allowed(text, tasks * cpus > total and cpus <= most) if total else None


def _gres(request: Request) -> Allowed | None:
    if not request.nodes:
        return None
    value = request.value
    wanted = gres(value if request.option == "gres" or not value else f"gpu:{value}")
    scale = len(request.nodes) if request.option == "gpus" else 1
    most = (
        max(
            sum(g.count for g in node.gres if g.name == one.name and one.kind in ("", g.kind))
            for node in request.nodes
        )
        for one in wanted
    )
    over = not wanted or any(
        number * scale < one.count for number, one in zip(most, wanted, strict=True)
    )
    kinds = sorted({(g.name, g.kind, g.count) for node in request.nodes for g in node.gres})
    shown = ", ".join(":".join(filter(None, (n, k, str(c)))) for n, k, c in kinds)
    return Allowed(f"the nodes of {request.place} have {shown or 'no generic resources'}", over)


_RULES: dict[str, Callable[[Request], Allowed | None]] = {
    "partition": _partition,
    "account": _account,
    "qos": _qos,
    "constraint": _feature,
    "nodes": _nodes,
    "time": _time,
    "ntasks": _tasks,
    **dict.fromkeys(("mem", "mem-per-cpu", "mem-per-gpu"), _memory),
    **dict.fromkeys(("ntasks-per-node", "cpus-per-task"), _cores),
    **dict.fromkeys(("nodelist", "exclude"), _nodelist),
    **dict.fromkeys(("gres", "gpus-per-node", "gpus"), _gres),
}


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
    yield RuleHit(line, message, advice=advice or _UNKNOWN)


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
    yield RuleHit(1, f"Slurm accepts {answer.subject}{plan}")
    for words in answer.warnings:
        message = f"Slurm accepts {answer.subject}, but says: {_plain(words)}"
        advice = "leave the option out, or ask the site"
        line = line_of(script, answer, words)
        yield RuleHit(line, message, advice=advice, severity="warning")


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
        yield RuleHit(1, f"{answer.subject} was not judged: {_plain(answer.words)}")


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
            yield RuleHit(line, message, severity="warning")
        else:
            yield RuleHit(1, f"{text} is effective as --{one.option}")
    if answer.outer_job:
        message = f"this shell is in job {answer.outer_job}, whose variables were removed here"
        yield RuleHit(1, message, advice="submit from a shell outside any job")


def _plain(text: str) -> str:
    return "".join(c if c.isprintable() else "?" for c in text)
