"""Rules on the requested amounts: memory without a unit, GPU numbers that contradict each other."""

from __future__ import annotations

import re
from collections.abc import Iterator

from hpc_train.lint.requested_resources import RequestedResources
from hpc_train.lint.rule import RuleHit, Subject, rule
from hpc_train.lint.rules.rank_and_node_counts import rank_launches

# No process that loads torch fits into less.
_LEAST = {"mem": 1000, "mem-per-gpu": 1000, "mem-per-cpu": 65}
_GPUS = re.compile(r"^(?:([^:,=]+):)?(\d{1,6})")


@rule(
    "HT113",
    "warning",
    "memory in megabytes",
    why="A number without a unit is megabytes: --mem=64 requests 64 MB, and the job is killed when "
    "it loads torch.",
    advice="write the unit, e.g. --mem=64G",
)
def memory_without_unit(subject: Subject) -> Iterator[RuleHit]:
    script, asked = subject.script, subject.script.asked
    gpus = asked.has("gpus", "gpus-per-node", "gpus-per-task") or asked.gpus_per_node
    if not gpus and not any(rank_launches(script)):
        return
    for name, least in _LEAST.items():
        value = asked.value(name) or ""
        if re.fullmatch(r"\d{1,9}", value) and 0 < int(value) < least:
            message = f"--{name}={value} is {int(value)} MB"
            yield RuleHit(line=asked.line(name), message=message)


@rule(
    "HT114",
    "error",
    "numbers of GPUs that contradict each other",
    why="--gpus counts the GPUs of the whole job. sbatch refuses it unless it is the GPUs per node "
    "times the nodes, or the GPUs per task times the tasks, and unless all or none name a type.",
    advice="keep one option; --gpus-per-node=N unless the site requires --gres=gpu:N",
)
def contradicting_gpus(subject: Subject) -> Iterator[RuleHit]:
    asked = subject.script.asked
    total = _gpus(asked.value("gpus"))
    if total is None:
        return
    yield from _against_nodes(asked, *total)
    tasks, each = asked.value("ntasks") or "", _gpus(asked.value("gpus-per-task"))
    if each and re.fullmatch(r"\d{1,6}", tasks) and int(tasks) * each[1] != total[1]:
        message = (
            f"--gpus={total[1]}, but {tasks} tasks x {each[1]} GPUs are {int(tasks) * each[1]}"
        )
        yield RuleHit(line=asked.line("gpus", "gpus-per-task", "ntasks"), message=message)


def _against_nodes(asked: RequestedResources, kind: str, total: int) -> Iterator[RuleHit]:
    option = "gpus-per-node" if asked.has("gpus-per-node") else "gres"
    text = asked.value(option) or ""
    each = _gpus(text if option != "gres" else text.removeprefix("gpu:"))
    if each is None or not each[1] or not total or (option == "gres" and not _is_gpu(text)):
        return
    named = f"--{option}={text}"
    line = asked.line("gpus", option)
    if bool(kind) != bool(each[0]):
        yield RuleHit(line=line, message=f"{named} and --gpus: only one of them names a type")
    elif kind != each[0]:
        return
    elif total % each[1]:
        yield RuleHit(line=line, message=f"--gpus={total} is not a multiple of {named}")
    elif not _fits(asked.value("nodes"), total // each[1]):
        nodes = asked.value("nodes")
        needs = f"needs {total // each[1]} node{'s' * (total != each[1])}, not {nodes}"
        yield RuleHit(line=line, message=f"--gpus={total} with {named} {needs}")


def _is_gpu(gres: str) -> bool:
    return gres.startswith("gpu:")


def _gpus(text: str | None) -> tuple[str, int] | None:
    """Read `4` or `a100:4`: the type, which may be empty, and the number."""
    match = _GPUS.fullmatch(text or "")
    return (match[1] or "", int(match[2])) if match else None


def _fits(nodes: str | None, needed: int) -> bool:
    """Whether a number of nodes is within `2` or `2-4`; unknown forms fit."""
    match = re.fullmatch(r"(\d{1,6})(?:-(\d{1,6}))?", nodes or "")
    return match is None or int(match[1]) <= needed <= int(match[2] or match[1])
