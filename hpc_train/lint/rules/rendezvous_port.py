"""Rules on the port of the rendezvous."""

from __future__ import annotations

import re
from collections.abc import Iterator

from hpc_train.lint.job_script import JobScript
from hpc_train.lint.requested_resources import gpu_count
from hpc_train.lint.rule import RuleHit, Subject, rule
from hpc_train.lint.rules.rank_and_node_counts import rank_launches
from hpc_train.lint.script_variables import Assignment
from hpc_train.model.finding import Severity
from hpc_train.registry import find_batch_system

_PORTS = ("MASTER_PORT", "RDZV_PORT", "PORT", "MAIN_PROCESS_PORT")
_EPHEMERAL = range(32768, 61000)
_SERVER = re.compile(r"vllm(?:\.|$)|sglang(?:\.|$)|tritonserver$")
_SHUF = re.compile(r"shuf\s+(?:-n\s*1\s+)?(?:-i\s*|--input-range=)(\d{1,9})-(\d{1,9})")
_BASE_MODULO = re.compile(r"(\d{4,5}) ?\+[^%]{0,99}% ?(\d{2,5})|% ?(\d{2,5}) ?\)? ?\+ ?(\d{4,5})")


def port_settings(script: JobScript) -> Iterator[Assignment]:
    """Yield the ports of a rendezvous; a server that is the only program chooses its own port."""
    launches = tuple(rank_launches(script))
    serves = launches and all(
        any(_SERVER.match(word.text.rpartition("/")[2]) for word in launch.words)
        for launch in launches
    )
    for found in script.settings(*_PORTS):
        if not (serves and found.name == "MASTER_PORT"):
            yield found


@rule(
    "HT303",
    "warning",
    "fixed port",
    why="Two jobs on one node use the same port: the second fails (address already in use) or "
    "connects to the ranks of the first. 29500 is PyTorch's default.",
    advice="derive it from the job: MASTER_PORT=$((61000 + SLURM_JOB_ID % 4000))",
)
def fixed_port(subject: Subject) -> Iterator[RuleHit]:
    script = subject.script
    site = subject.context.site
    if script.asked.has("exclusive") or (site and find_batch_system(site.scheduler).whole_nodes):
        return
    for line, text in _ports(subject):
        port = re.fullmatch(r"^(?:.*:)?(\d{3,5})", text)
        if port and int(port[1]) > 0:
            shared = int(port[1]) == 29500 and not _whole_nodes(script)
            severity: Severity | None = None if shared else "info"
            yield RuleHit(
                line=line, message=f"port {port[1]} is the same for every job", severity=severity
            )


def _whole_nodes(script: JobScript) -> bool:
    """Whether no GPU is left for another job: nodes have eight, or fewer."""
    each = script.asked.value("gpus-per-task") or ""
    return (script.asked.gpus_per_node or gpu_count(each) or 0) >= 8


def _ports(subject: Subject) -> Iterator[tuple[int, str]]:
    script = subject.script
    seen: set[str] = set()
    for found in port_settings(script):
        seen.add(found.value)
        yield found.line, found.value
    for launch in rank_launches(script):
        for name in ("master-port", "rdzv-endpoint", "main-process-port"):
            text = launch.flags.get(name) or ""
            if text.rpartition(":")[2] not in seen:
                yield launch.starter_line, text
        for word in launch.command.words:
            if word.text.removeprefix("--dist-url=").startswith("tcp://"):
                yield word.line, word.text


@rule(
    "HT304",
    "info",
    "port in the ephemeral range",
    why="Linux assigns ports 32768 to 60999 to outgoing connections: the chosen port may be in "
    "use, and the job then fails at its start.",
    advice="choose a port from 61000 on: MASTER_PORT=$((61000 + SLURM_JOB_ID % 4000))",
)
def ephemeral_port(subject: Subject) -> Iterator[RuleHit]:
    for found in subject.script.settings(*_PORTS):
        chosen = _range(found.value)
        if chosen and chosen[0] < _EPHEMERAL.stop and chosen[1] >= _EPHEMERAL.start:
            low, high = chosen
            if low != high:
                message = f"ports {low} to {high} are partly ephemeral (32768 to 60999)"
                yield RuleHit(line=found.line, message=message)


def _range(text: str) -> tuple[int, int] | None:
    shuffled = _SHUF.search(text)
    if shuffled:
        return int(shuffled[1]), int(shuffled[2])
    modulo = _BASE_MODULO.search(text) if "$((" in text else None
    if modulo is None:
        return None
    base, span = (modulo[1], modulo[2]) if modulo[1] else (modulo[4], modulo[3])
    return int(base), int(base) + int(span) - 1
