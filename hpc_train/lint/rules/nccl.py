"""Rules on the values of NCCL's variables."""

from __future__ import annotations

import re
from collections.abc import Iterator

from hpc_train.lint.nccl_variables import nccl_variables
from hpc_train.lint.rule import RuleHit, Subject, rule
from hpc_train.model.version_ranges import older


@rule(
    "HT523",
    "warning",
    "NCCL_DEBUG left on",
    why="INFO prints hundreds of lines a rank and TRACE every call: logs become large, the start "
    "slow, and relevant lines hard to find.",
    advice="write NCCL_DEBUG=WARN, or keep INFO and write one file per process "
    "(NCCL_DEBUG_FILE=…%h.%p), or limit it (NCCL_DEBUG_SUBSYS=INIT,NET)",
)
def debug_left_on(subject: Subject) -> Iterator[RuleHit]:
    script = subject.script
    limited = script.sets("NCCL_DEBUG_FILE", "NCCL_DEBUG_SUBSYS")
    for found in subject.script.exported_values("NCCL_DEBUG"):
        level = found.value.upper()
        if level == "TRACE" or (level == "INFO" and not limited):
            yield RuleHit(
                line=found.line,
                message=f"NCCL_DEBUG={found.value}",
                severity="info" if level == "INFO" else None,
            )
    for found in subject.script.exported_values("NCCL_DEBUG_SUBSYS"):
        if found.value.upper() == "ALL":
            yield RuleHit(line=found.line, message="NCCL_DEBUG_SUBSYS=ALL prints each collective")


@rule(
    "HT524",
    "warning",
    "NCCL_ALGO or NCCL_PROTO",
    why="NCCL selects the algorithm for each message size and topology; a fixed choice suits only "
    "the case that was measured, disables the tuner of AWS's plug-in, and forcing LL128 can "
    "corrupt data on hardware that does not guarantee the order of 128-byte stores.",
    advice="leave it out; to forbid one protocol write NCCL_PROTO=^LL128",
)
def fixed_algorithm(subject: Subject) -> Iterator[RuleHit]:
    efa = subject.context.fabric == "efa" or any(
        found.value == "efa" for found in subject.script.settings("FI_PROVIDER")
    )
    for found in subject.script.exported_values("NCCL_ALGO", "NCCL_PROTO"):
        if found.value.startswith("^") and not efa:
            continue
        dangerous = found.name == "NCCL_PROTO" and "LL128" in found.value.upper()
        reason = "disables AWS's tuner" if efa else "replaces NCCL's own choice"
        reason = "can corrupt data" if dangerous and not efa else reason
        yield RuleHit(
            line=found.line,
            message=f"{found.name}={found.value} {reason}",
            severity=None if efa or dangerous else "info",
        )


@rule(
    "HT525",
    "info",
    "NCCL level as a number",
    why="The numbers of NCCL_NET_GDR_LEVEL and NCCL_P2P_LEVEL have changed their meaning between "
    "versions; the names have not.",
    advice="write the name: LOC, PIX, PXB, PHB or SYS (NVL for P2P)",
)
def level_as_number(subject: Subject) -> Iterator[RuleHit]:
    for found in subject.script.exported_values("NCCL_NET_GDR_LEVEL", "NCCL_P2P_LEVEL"):
        if found.value.isdigit():
            yield RuleHit(line=found.line, message=f"{found.name}={found.value} is a number")


@rule(
    "HT531",
    "warning",
    "value that NCCL does not accept",
    why="NCCL ignores a value that it cannot parse, or reads it as 0.",
    advice="write one of the allowed values",
)
def wrong_value(subject: Subject) -> Iterator[RuleHit]:
    values = nccl_variables().values
    for found in subject.script.exported_values(*values):
        allowed = values[found.name]
        if found.value.upper() not in allowed:
            words = [word for word in allowed if not (word.isdigit() and "LOC" in allowed)]
            yield RuleHit(
                line=found.line,
                message=f"{found.name}={found.value}; allowed: {', '.join(words)}",
            )


@rule(
    "HT532",
    "warning",
    "NCCL_DEBUG_FILE for all ranks",
    why="Without %h (host) and %p (process) all ranks write to one file and overwrite its "
    "contents.",
    advice="write NCCL_DEBUG_FILE=/path/nccl.%h.%p",
)
def debug_file(subject: Subject) -> Iterator[RuleHit]:
    for found in subject.script.settings("NCCL_DEBUG_FILE"):
        ranked = "%p" in found.value or "PROCID" in found.value or "RANK" in found.value
        if found.exported and found.value and not ranked and not found.value.startswith("/dev/"):
            yield RuleHit(line=found.line, message=f"NCCL_DEBUG_FILE={found.value} has no %p")


@rule(
    "HT533",
    "info",
    "ulimit -s unlimited",
    why="With an unlimited stack, NCCL before 2.28 gives its helper threads 2 MiB only, "
    "which can crash the initialization of multi-node NVLink.",
    advice="leave it out, or ulimit -s 8192",
)
def unlimited_stack(subject: Subject) -> Iterator[RuleHit]:
    version = subject.context.nccl
    for command in subject.script.runs("ulimit"):
        texts = [word.text for word in command.words]
        stack = any(re.fullmatch(r"-[SH]*s[SH]*", text) for text in texts)
        if stack and "unlimited" in texts and (version is None or older(version, "2.28")):
            message = f"with it, threads of NCCL {version or 'before 2.28'} have a small stack"
            yield RuleHit(
                line=command.line, message=message, severity="warning" if version else None
            )
