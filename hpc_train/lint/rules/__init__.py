"""All rules.

Here: one module for each subject; a function with `@rule` is a rule.
Not here: reading scripts (`lint`, `base.shell`), queues and their limits (`plans.queue_limits`).
"""

from functools import lru_cache

from hpc_train.lint.rule import LintRule
from hpc_train.lint.rules import (
    directives,
    environment,
    exit_and_requeue,
    header,
    nccl_network,
    pbs,
    rendezvous,
    resources,
    site,
    slurm_answer,
    srun_and_mpi,
    torchrun,
)

_MODULES = (
    header, directives, resources, srun_and_mpi, torchrun, rendezvous, exit_and_requeue,
    environment, nccl_network, site, slurm_answer, pbs,
)  # fmt: skip


@lru_cache(maxsize=1)
def all_rules() -> tuple[LintRule, ...]:
    """Return all rules in order of their ids."""
    found = [
        rule for module in _MODULES for rule in vars(module).values() if type(rule) is LintRule
    ]
    return tuple(sorted(found, key=lambda rule: rule.id))
