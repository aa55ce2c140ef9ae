"""The reason for each directive, and the trap (docs/linting.md) that it avoids."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Literal

from hpc_train.base.decode import load_data
from hpc_train.base.value import Value
from hpc_train.plans.plan import Setting


class Reason(Value, frozen=True, kw_only=True):
    """`trap` is its number in docs/linting.md, or empty."""

    why: str
    trap: str = ""


# Directives whose name differs from that of their setting.
_SETTINGS = {
    "job-name": "name",
    "ntasks-per-node": "tasks_per_node",
    "cpus-per-task": "cpus_per_task",
    "gpus-per-node": "gpus_per_node",
    "gres": "gpus_per_node",
    "signal": "signal_before_end",
    "requeue": "lifecycle.requeue_on",
    "gpus": "gpus_per_node",
    "gpus-per-task": "gpus_per_node",
    "mem-per-gpu": "mem",
    "mem-per-cpu": "mem",
    # Of PBS, whose -A or -P is the project.
    "N": "name",
    "q": "partition",
    "A": "account",
    "P": "account",
    "select": "nodes",
    "place": "exclusive",
    "ncpus": "cpus_per_task",
    "ngpus": "gpus_per_node",
    "walltime": "time",
}


class Explanations(Value, frozen=True, kw_only=True):
    """`explanations.yaml`: the reasons of directives, and of the options of each program."""

    schema: Literal[1]
    directives: dict[str, Reason]
    programs: dict[str, dict[str, Reason]]


@cache
def explanations() -> Explanations:
    """Return the table."""
    return load_data("explanations.yaml", Explanations)


def setting_of(option: str, settings: Mapping[str, Setting]) -> Setting:
    """Return the setting of a directive, with the directive's own reason if it has one."""
    key = _SETTINGS.get(option, option.replace("-", "_"))
    requests = (name for name in settings if name.startswith("storage."))
    needed = next((name for name in requests if name.endswith(f" --{option}")), "")
    # Of the queue, of a request of the job, or of its storage.
    found = settings.get(f"select.{option}") or settings.get(key) or settings.get(needed)
    added, resources = settings.get(f"directives.{option}"), settings.get("directives.l")
    if resources is not None and f"{option}=" in str(resources.value):
        found = resources
    # `false` only removes the site's option.
    if added is not None and added.value is not False:
        found = added
    origin = found.origin if found else "rule"
    reason = explanations().directives.get(option)
    why = reason.why if reason else (found.why if found else "")
    return Setting(value=found.value if found else None, origin=origin, why=why)
