"""The rule on ports that are reserved or belong to other services."""

from __future__ import annotations

import re
from collections.abc import Iterator

from hpc_train.lint.rule import RuleHit, Subject, rule
from hpc_train.lint.rules.rank_and_node_counts import rank_launches
from hpc_train.lint.rules.rendezvous_port import port_settings

# Expressions without blanks.
_NUMBER = r"\$?\{?(?:RANDOM|SLURM_JOB_?ID)\}?"
_SHUF = re.compile(r"(?:\$\(|`)shuf[^|]{0,40}?(?:-i|--input-range=)(\d{1,5})-\d{1,5}[^|]{0,40}$")
_MODULO = re.compile(rf"\$\(\((?:(\d{{1,5}})\+)?\(?{_NUMBER}%\d{{1,5}}\)?(?:\+(\d{{1,5}}))?\)\)")
_EXPR = re.compile(r"(?:\$\(|`)expr\$\{?RANDOM\}?%\d{1,5}(?:\)|`)")
_RANDOM = re.compile(r"\$\{?RANDOM\}?")
_FIRST = 1024


@rule(
    "HT314",
    "warning",
    "port below 1024",
    why="Only root may listen on ports below 1024: a job that draws such a port fails at its start "
    "(permission denied).",
    advice="add a base to it: MASTER_PORT=$((61000 + SLURM_JOB_ID % 4000))",
)
def low_port(subject: Subject) -> Iterator[RuleHit]:
    seen: set[str] = set()
    for line, text in _ports(subject):
        low = None if text in seen else _lowest(text)
        seen.add(text)
        if low is not None and low < _FIRST:
            yield RuleHit(line=line, message=f"the port {text} can be as low as {low}")


def _ports(subject: Subject) -> Iterator[tuple[int, str]]:
    script = subject.script
    for found in port_settings(script):
        yield found.line, found.value
    for launch in rank_launches(script):
        for name in ("master-port", "main-process-port", "rdzv-endpoint"):
            text = script.values.substitute(launch.flags.get(name) or "")
            yield launch.starter_line, text if name != "rdzv-endpoint" else text.rpartition(":")[2]


def _lowest(text: str) -> int | None:
    """Return the lowest port that an expression can give; None if it is unknown."""
    text = "".join(text.split())
    if _RANDOM.fullmatch(text) or _EXPR.fullmatch(text):
        return 0
    shuffled, modulo = _SHUF.match(text), _MODULO.fullmatch(text)
    if shuffled:
        return int(shuffled[1])
    return int(modulo[1] or 0) + int(modulo[2] or 0) if modulo else None
