"""Rules on the answer of `sbatch --test-only`; without an answer (`--ask`) they find nothing."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from hpc_train.base.errors import nearest
from hpc_train.base.slurm_options import gres
from hpc_train.base.values import LintFinding, slurm_memory, slurm_seconds
from hpc_train.lint.directives import Option, RequestedResources
from hpc_train.lint.rule import RuleHit, Subject, rule
from hpc_train.lint.script import JobScript

if TYPE_CHECKING:
    from hpc_train.slurm.live_cluster import LiveNode, LivePartition, SlurmAnswer, SlurmFacts

REFUSED = "HT801"
_NAME = re.compile(r"(?<![\w-])--([a-z][a-z-]*[a-z])")
_UNUSABLE = ("DOWN", "DRAIN", "FAIL", "UNKNOWN")
_MOST_NAMES = 12
_UNKNOWN = "hpctrain does not know this message; ask the site (`sbatch --test-only` repeats it)"


def explain(script: JobScript, answer: SlurmAnswer) -> tuple[int, str]:
    """Return the line of the directive and the advice; line 1 if no directive is known."""
    refusal = answer.refusal
    if refusal is None:
        return line_of(script, answer, answer.words), _UNKNOWN
    given = _given(script, refusal.options)
    names = [one.name for one in given] or refusal.options
    limits = {name: _limit(name, script.asked, answer.facts) for name in names}
    wrong = [one for one in given if (limit := limits[one.name]) and limit.exceeded]
    parts = [refusal.meaning]
    if len(given) > 1:
        shown = dict.fromkeys(_shown(one) for one in wrong or given)
        parts.append(f"it is about {' or '.join(shown)}")
    if not wrong:
        parts.append(_unusable_nodes(script.asked, answer.facts))
    about = [one.name for one in wrong] or names
    parts += [limit.text for name in about if (limit := limits[name])]
    line = wrong[0].line if wrong else line_of(script, answer)
    return line, "; ".join(dict.fromkeys(filter(None, (*parts, refusal.advice))))


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
    findings: Iterable[LintFinding], answer: SlurmAnswer
) -> tuple[LintFinding, ...]:
    """Leave the refusal out where an error of a rule has said the same of the same line."""
    findings = tuple(findings)
    same = answer.refusal.same if answer.refusal else ()
    said = {
        one.line
        for one in findings
        if same and one.severity == "error" and one.id.startswith(same) and one.id != REFUSED
    }
    return tuple(one for one in findings if one.id != REFUSED or one.line not in said)


def _given(script: JobScript, names: Iterable[str]) -> list[Option]:
    """Return the effective options of these names, or those of all heterogeneous components."""
    options = [option for one in script.live_directives for option in one.options]
    if not any(one.group for one in script.directives):
        options = list({option.name: option for option in options}.values())
    return [option for name in names for option in options if option.name == name]


def _shown(one: Option) -> str:
    value = f"{'=' if one.spelled.startswith('--') else ' '}{one.value}" if one.value else ""
    return f"{one.spelled}{value} (line {one.line})"


class Limit(NamedTuple):
    """What is allowed, as a text; `exceeded` if the script requests something else."""

    text: str
    exceeded: bool = False


def _limit(option: str, asked: RequestedResources, facts: SlurmFacts) -> Limit | None:
    """Return what Slurm allows for an option; None if it is not known."""
    value = asked.value(option) or ""
    partitions, nodes = _places(asked, facts)
    nodes = [node for node in nodes if _usable(node)]
    of_nodes = f"the nodes of {' and '.join(one.name for one in partitions)} have"
    if option in ("nodes", "time"):
        return _limit_of_partitions(option, value, asked.nodes, partitions)
    if option in ("mem", "mem-per-cpu", "mem-per-gpu"):
        most = max((node.memory for node in nodes if node.memory), default=None)
        over = most is not None and (slurm_memory(value) or 0) > most
        # A share of a core or GPU is compared with the whole.
        share = option != "mem"
        text = f"{of_nodes} at most {most}{' in all' * share}"
        return Limit(text, over) if most and (over or not share) else None
    if option in ("ntasks", "ntasks-per-node", "cpus-per-task"):
        return _limit_of_cores(option, asked, [node.cpus for node in nodes], of_nodes)
    if option in ("gres", "gpus-per-node", "gpus"):
        return _limit_of_gres(option, value, nodes, of_nodes)
    features = {name for node in nodes for name in node.features}
    names = {
        "partition": ("partitions", [one.name for one in facts.partitions]),
        "account": ("your accounts", sorted(one.account for one in facts.associations)),
        "qos": ("your QOS", sorted(name for one in facts.associations for name in one.qos)),
        "constraint": ("features", sorted(features)),
        "nodelist": ("nodes", [node.name for node in facts.nodes]),
    }
    found = _limit_of_names(*names[option], value) if option in names else None
    if option == "constraint" and nodes and not features:
        found = Limit(f"{of_nodes} no features", exceeded=True)
    states = [f"{p.name} is {p.state}" for p in partitions if p.state not in ("", "UP")]
    if option == "partition" and states and not (found and found.exceeded):
        return Limit(", ".join(states), exceeded=True)
    return found


def _places(
    asked: RequestedResources, facts: SlurmFacts
) -> tuple[list[LivePartition], list[LiveNode]]:
    """Return the partitions that a script requests, or the default one, and their nodes."""
    named = (asked.value("partition") or "").split(",")
    partitions = [
        one
        for one in facts.partitions
        if (one.name in named if asked.has("partition") else one.default)
    ]
    names = {one.name for one in partitions}
    return partitions, [one for one in facts.nodes if names & set(one.partitions)]


def _unusable_nodes(asked: RequestedResources, facts: SlurmFacts) -> str:
    """Return why no node of the partition can be used; empty if some can."""
    partitions, nodes = _places(asked, facts)
    if not nodes or any(map(_usable, nodes)):
        return ""
    states = ", ".join(sorted({node.state for node in nodes}))
    names = " and ".join(sorted(one.name for one in partitions))
    return f"all {len(nodes)} nodes of {names} are unusable ({states})"


def _usable(node: LiveNode) -> bool:
    return not any(word in node.state for word in _UNUSABLE)


def _limit_of_names(kind: str, names: Sequence[str], given: str) -> Limit | None:
    known = list(dict.fromkeys(names))
    if not known:
        return None
    unknown = [name for name in given.split(",") if name and name not in known]
    near = nearest(unknown[0], known) if unknown else ""
    shown = ", ".join(known[:_MOST_NAMES]) + (", …" if len(known) > _MOST_NAMES else "")
    return Limit(f"{kind}: {shown}{near}", bool(unknown))


def _limit_of_partitions(
    option: str, value: str, wanted: int | None, partitions: Sequence[LivePartition]
) -> Limit | None:
    """Return the nodes or the time that the partitions allow."""
    place = f"{' and '.join(one.name for one in partitions)} allows"
    if option == "time":
        longest = min((p.max_time for p in partitions if p.max_time), default=None)
        seconds = slurm_seconds(value)
        over = longest is not None and seconds is not None and not 0 < seconds <= longest
        return Limit(f"{place} at most {longest}", over) if longest else None
    largest = max((p.largest for p in partitions if p.largest), default=None)
    least = min((p.min_nodes or 1 for p in partitions), default=1)
    if largest is None:
        return None
    bounds = f"{least} to {largest} nodes" if least > 1 else f"at most {largest} nodes"
    return Limit(f"{place} {bounds}", wanted is not None and not least <= wanted <= largest)


def _limit_of_cores(
    option: str, asked: RequestedResources, cores: Sequence[int], of_nodes: str
) -> Limit | None:
    most, total = max(cores, default=0), sum(cores)
    if not most:
        return None
    cpus = asked.cpus_per_task or 1
    if option == "ntasks":
        over = (asked.tasks or 1) * cpus > total and cpus <= most
        return Limit(f"{of_nodes} {total} cores together", over)
    tasks = asked.tasks_per_node or 1
    own, other = (tasks, cpus) if option == "ntasks-per-node" else (cpus, tasks)
    wanted = own if own > most else own * other
    # A size that is too large alone is the reason, not the other one.
    over = wanted > most and (own > most or other <= most)
    text = f"{of_nodes} at most {most} cores"
    return Limit(f"{text}, not {wanted}" if over else text, over)


def _limit_of_gres(
    option: str, value: str, nodes: Sequence[LiveNode], of_nodes: str
) -> Limit | None:
    if not nodes:
        return None
    wanted = gres(value if option == "gres" or not value else f"gpu:{value}")
    scale = len(nodes) if option == "gpus" else 1

    over = not wanted or any(
        scale * max(_count(node, one.name, one.kind) for node in nodes) < one.count
        for one in wanted
    )
    kinds = sorted({(g.name, g.kind, g.count) for node in nodes for g in node.gres})
    shown = ", ".join(":".join(filter(None, (n, k, str(c)))) for n, k, c in kinds)
    return Limit(f"{of_nodes} {shown or 'no generic resources'}", over)


def _count(node: LiveNode, name: str, kind: str) -> int:
    return sum(one.count for one in node.gres if one.name == name and kind in ("", one.kind))


@rule(
    "HT801",
    "error",
    "Slurm refuses the script (--ask)",
    advice="follow the explanation of the message",
)
def refused(subject: Subject) -> Iterator[RuleHit]:
    answer = subject.context.answer
    if answer is not None and answer.outcome == "refused":
        line, advice = explain(subject.script, answer)
        message = f"Slurm refuses {answer.subject}: {_plain(answer.words)}"
        yield RuleHit(line, message, advice=advice)


@rule(
    "HT802",
    "info",
    "Slurm accepts the script (--ask)",
    advice="submit it; until then other jobs may change the time and the nodes",
)
def accepted(subject: Subject) -> Iterator[RuleHit]:
    answer = subject.context.answer
    if answer is None or answer.outcome != "accepted":
        return
    plan = f", {_plain(answer.words)}" if answer.words else ""
    yield RuleHit(1, f"Slurm accepts {answer.subject}{plan}")
    for words in answer.warnings:
        message = f"Slurm accepts {answer.subject}, but says: {_plain(words)}"
        advice = "leave the option out, or ask the site"
        line = line_of(subject.script, answer, words)
        yield RuleHit(line, message, advice=advice, severity="warning")


@rule(
    "HT803",
    "info",
    "no answer from Slurm (--ask)",
    advice="check with sinfo whether Slurm answers this version of its commands (`sbatch "
    "--version`), and try again",
)
def unanswered(subject: Subject) -> Iterator[RuleHit]:
    answer = subject.context.answer
    if answer is not None and answer.outcome == "unanswered":
        yield RuleHit(1, f"{answer.subject} was not checked: {_plain(answer.words)}")


def _plain(text: str) -> str:
    return "".join(c if c.isprintable() else "?" for c in text)
