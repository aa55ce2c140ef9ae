"""All rules.

Here: one module for each subject; a function with `@rule` is a rule.
Not here: reading scripts (`lint`, `lint.shell`), queues and their limits (`model.queue_limits`).
"""

from __future__ import annotations

from functools import lru_cache
from types import ModuleType

from hpc_train.lint.rule import LintRule
from hpc_train.lint.rules import (
    binding,
    containers,
    directive_syntax,
    exit_and_requeue,
    header,
    mpi,
    nccl_network,
    option_values,
    pbs_directives,
    pbs_job,
    pbs_site,
    ports,
    rendezvous,
    rendezvous_port,
    resources,
    site,
    slurm_answer,
    srun,
    step_sizes,
    torchrun,
    variable_assignments,
    variable_names,
)

_MODULES: tuple[ModuleType, ...] = (
    header,
    directive_syntax,
    option_values,
    resources,
    srun,
    binding,
    torchrun,
    rendezvous,
    rendezvous_port,
    exit_and_requeue,
    variable_assignments,
    variable_names,
    nccl_network,
    mpi,
    site,
    containers,
    ports,
    step_sizes,
    slurm_answer,
    pbs_directives,
    pbs_job,
    pbs_site,
)


@lru_cache(maxsize=1)
def all_rules() -> tuple[LintRule, ...]:
    """Return all rules in order of their ids."""
    found = [
        rule for module in _MODULES for rule in vars(module).values() if type(rule) is LintRule
    ]
    return tuple(sorted(found, key=lambda rule: rule.id))
