"""All rules.

Here: one module for each subject; a function with `@rule` is a rule.
Not here: reading scripts (`lint`, `lint.shell`), queues and their limits (`model.queue_limits`).
"""

from __future__ import annotations

from functools import lru_cache
from types import ModuleType

from hpc_train.lint.rule import LintRule
from hpc_train.lint.rules import (
    directive_syntax,
    exit_and_requeue,
    header,
    mpi,
    nccl,
    nccl_network,
    rendezvous,
    resources,
    site,
    slurm_answer,
    srun,
    torchrun,
    ucx_and_libfabric,
    variable_assignments,
    variable_names,
)

_MODULES: tuple[ModuleType, ...] = (
    header,
    directive_syntax,
    resources,
    srun,
    torchrun,
    rendezvous,
    exit_and_requeue,
    variable_assignments,
    variable_names,
    nccl,
    nccl_network,
    mpi,
    ucx_and_libfabric,
    site,
    slurm_answer,
)


@lru_cache(maxsize=1)
def all_rules() -> tuple[LintRule, ...]:
    """Return all rules in order of their ids."""
    found = [
        rule for module in _MODULES for rule in vars(module).values() if type(rule) is LintRule
    ]
    return tuple(sorted(found, key=lambda rule: rule.id))
