"""All rules."""

from __future__ import annotations

from functools import lru_cache
from types import ModuleType

from hpc_train.lint.rule import Rule
from hpc_train.lint.rules import (
    devices,
    directive,
    ending,
    environment,
    fabric,
    header,
    mpi,
    names,
    nccl,
    nccl_network,
    rendezvous,
    resources,
    site,
    srun,
    torchrun,
)

_MODULES: tuple[ModuleType, ...] = (
    header,
    directive,
    resources,
    srun,
    torchrun,
    rendezvous,
    devices,
    ending,
    environment,
    names,
    nccl,
    nccl_network,
    mpi,
    fabric,
    site,
)


@lru_cache(maxsize=1)
def all_rules() -> tuple[Rule, ...]:
    """Return all rules in order of their ids."""
    found = [rule for module in _MODULES for rule in vars(module).values() if type(rule) is Rule]
    return tuple(sorted(found, key=lambda rule: rule.id))
