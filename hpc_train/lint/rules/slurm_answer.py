"""Rules on the answer of `sbatch --test-only`; without an answer (`--ask`) they find nothing."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator

from hpc_train.base.errors import nearest
from hpc_train.base.finding import LintFinding
from hpc_train.base.slurm_options import gres
from hpc_train.base.units import slurm_memory, slurm_seconds
from hpc_train.base.value import Value
from hpc_train.lint.directives import RequestedResources
from hpc_train.lint.options import Option
from hpc_train.lint.rule import RuleHit, Subject, rule
from hpc_train.lint.script import JobScript
from hpc_train.slurm.live_cluster import LiveNode, LivePartition, SlurmAnswer

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


class Allowed(Value, frozen=True, kw_only=True):
    """What is allowed, as a text; `exceeded` if the script requests something else."""

    text: str
    exceeded: bool = False


class Request(Value, frozen=True, kw_only=True):
    """What a script requests, of the partitions and nodes that it requests it of."""

    asked: RequestedResources
    answer: SlurmAnswer
    partitions: tuple[LivePartition, ...]
    nodes: tuple[LiveNode, ...]

    def value(self, option: str) -> str:
        """Return the value of an option: the script's, or that of an effective variable."""
        return value_of(option, self.asked, self.answer)

    @property
    def place(self) -> str:
        """The names of the partitions."""
        return " and ".join(one.name for one in self.partitions)


def allowed(option: str, asked: RequestedResources, answer: SlurmAnswer) -> Allowed | None:
    """Return what Slurm allows for an option; None if it is not known."""
    facts = answer.facts
    named = value_of("partition", asked, answer).split(",")
    partitions = tuple(p for p in facts.partitions if p.name in named)
    if named == [""]:
        partitions = tuple(p for p in facts.partitions if p.default)
    places = {partition.name for partition in partitions}
    nodes = tuple(n for n in facts.nodes if places & set(n.partitions) and _usable(n))
    rule = _RULES.get(option)
    if rule is None:
        return None
    return rule(Request(asked=asked, answer=answer, partitions=partitions, nodes=nodes))


def value_of(option: str, asked: RequestedResources, answer: SlurmAnswer) -> str:
    """Return the value of an option: the script's, or that of an effective variable."""
    effective = [v.value for v in answer.variables if v.option == option and not v.removed]
    return asked.value(option) or (effective[0] if effective and not asked.has(option) else "")


def unusable_nodes(asked: RequestedResources, answer: SlurmAnswer) -> str:
    """Return why no node of the partition can be used; empty if some can."""
    named = value_of("partition", asked, answer).split(",")
    default = [p.name for p in answer.facts.partitions if p.default]
    places = set(default if named == [""] else named)
    nodes = [node for node in answer.facts.nodes if places & set(node.partitions)]
    if not nodes or any(map(_usable, nodes)):
        return ""
    states = ", ".join(sorted({node.state for node in nodes}))
    return f"all {len(nodes)} nodes of {' and '.join(sorted(places))} are unusable ({states})"


def _usable(node: LiveNode) -> bool:
    return not any(word in node.state for word in _UNUSABLE)


def _names(kind: str, given: str, names: Iterable[str]) -> Allowed | None:
    known = list(dict.fromkeys(names))
    if not known:
        return None
    unknown = [name for name in given.split(",") if name and name not in known]
    near = nearest(unknown[0], known) if unknown else ""
    shown = ", ".join(known[:_MOST_NAMES]) + (", …" if len(known) > _MOST_NAMES else "")
    return Allowed(text=f"{kind}: {shown}{near}", exceeded=bool(unknown))


def _partition(request: Request) -> Allowed | None:
    names = [partition.name for partition in request.answer.facts.partitions]
    found = _names("partitions", request.value("partition"), names)
    if found is None or found.exceeded:
        return found
    states = [f"{p.name} is {p.state}" for p in request.partitions if p.state not in ("", "UP")]
    return Allowed(text=", ".join(states), exceeded=True) if states else found


def _account(request: Request) -> Allowed | None:
    accounts = sorted(one.account for one in request.answer.facts.associations)
    return _names("your accounts", request.value("account"), accounts)


def _qos(request: Request) -> Allowed | None:
    qos = sorted(name for one in request.answer.facts.associations for name in one.qos)
    return _names("your QOS", request.value("qos"), qos)


def _feature(request: Request) -> Allowed | None:
    features = sorted({name for node in request.nodes for name in node.features})
    if request.nodes and not features:
        return Allowed(text=f"the nodes of {request.place} have no features", exceeded=True)
    return _names("features", request.value("constraint"), features)


def _nodelist(option: str) -> Rule:
    def rule(request: Request) -> Allowed | None:
        given = request.value(option)
        names = [node.name for node in request.answer.facts.nodes]
        found = _names("nodes", "" if "[" in given else given, names)
        return found if found and found.exceeded else None

    return rule


def _nodes(request: Request) -> Allowed | None:
    largest = max((p.largest for p in request.partitions if p.largest), default=None)
    least = min((p.min_nodes or 1 for p in request.partitions), default=1)
    wanted = request.asked.nodes
    if largest is None:
        return None
    bounds = f"{least} to {largest} nodes" if least > 1 else f"at most {largest} nodes"
    over = wanted is not None and not least <= wanted <= largest
    return Allowed(text=f"{request.place} allows {bounds}", exceeded=over)


def _time(request: Request) -> Allowed | None:
    limits = [p.max_time for p in request.partitions]
    most = min((limit for limit in limits if limit), default=None)
    if most is None:
        return None
    wanted = slurm_seconds(request.value("time"))
    over = wanted is not None and not 0 < wanted <= most
    return Allowed(text=f"{request.place} allows at most {most}", exceeded=over)


def _memory(request: Request) -> Allowed | None:
    most = max((node.memory for node in request.nodes if node.memory), default=None)
    wanted = slurm_memory(request.value("mem"))
    text = f"the nodes of {request.place} have at most {most}"
    over = most is not None and wanted is not None and wanted > most
    return Allowed(text=text, exceeded=over) if most else None


def _share_of_memory(option: str) -> Rule:
    def rule(request: Request) -> Allowed | None:
        most = max((node.memory for node in request.nodes if node.memory), default=None)
        wanted = slurm_memory(request.value(option))
        over = most is not None and wanted is not None and wanted > most
        text = f"the nodes of {request.place} have at most {most} in all"
        return Allowed(text=text, exceeded=True) if over else None

    return rule


def _cores(option: str) -> Rule:
    def rule(request: Request) -> Allowed | None:
        most = max((node.cpus for node in request.nodes), default=0)
        tasks, cpus = request.asked.tasks_per_node or 1, request.asked.cpus_per_task or 1
        own, other = (tasks, cpus) if option == "ntasks-per-node" else (cpus, tasks)
        wanted = own if own > most else own * other
        # A size that is too large alone is the reason, not the other one.
        over = wanted > most and (own > most or other <= most)
        text = f"the nodes of {request.place} have at most {most} cores"
        shown = f"{text}, not {wanted}" if over else text
        return Allowed(text=shown, exceeded=over) if most else None

    return rule


def _tasks(request: Request) -> Allowed | None:
    most = max((node.cpus for node in request.nodes), default=0)
    total = sum(node.cpus for node in request.nodes)
    tasks, cpus = request.asked.tasks or 1, request.asked.cpus_per_task or 1
    text = f"the nodes of {request.place} have {total} cores together"
    return Allowed(text=text, exceeded=tasks * cpus > total and cpus <= most) if total else None


def _gres(option: str) -> Rule:
    def rule(request: Request) -> Allowed | None:
        if not request.nodes:
            return None
        value = request.value(option)
        bare = value if option == "gres" or not value else f"gpu:{value}"
        wanted = gres(bare)
        scale = len(request.nodes) if option == "gpus" else 1
        over = not wanted or any(
            _most(request.nodes, one.name, one.kind) * scale < one.count for one in wanted
        )
        kinds = sorted({(g.name, g.kind, g.count) for node in request.nodes for g in node.gres})
        shown = ", ".join(":".join(filter(None, (n, k, str(c)))) for n, k, c in kinds)
        text = f"the nodes of {request.place} have {shown or 'no generic resources'}"
        return Allowed(text=text, exceeded=over)

    return rule


def _most(nodes: Iterable[LiveNode], name: str, kind: str) -> int:
    """Return the largest number of a resource on one node; of any kind without one."""
    counts = (
        sum(g.count for g in node.gres if g.name == name and kind in ("", g.kind)) for node in nodes
    )
    return max(counts, default=0)


Rule = Callable[[Request], "Allowed | None"]
_RULES: dict[str, Rule] = {
    "partition": _partition,
    "account": _account,
    "qos": _qos,
    "constraint": _feature,
    "nodes": _nodes,
    "time": _time,
    "mem": _memory,
    "mem-per-cpu": _share_of_memory("mem-per-cpu"),
    "mem-per-gpu": _share_of_memory("mem-per-gpu"),
    "ntasks-per-node": _cores("ntasks-per-node"),
    "cpus-per-task": _cores("cpus-per-task"),
    "ntasks": _tasks,
    "nodelist": _nodelist("nodelist"),
    "exclude": _nodelist("exclude"),
    "gres": _gres("gres"),
    "gpus-per-node": _gres("gpus-per-node"),
    "gpus": _gres("gpus"),
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
