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
    continuation_lines,
    directive_syntax,
    exit_and_requeue,
    gres_names,
    header,
    kill_on_bad_exit,
    late_exports,
    log_files,
    mpi,
    nccl,
    nccl_network,
    option_values,
    pbs_directives,
    pbs_job,
    pbs_site,
    ports,
    rendezvous,
    rendezvous_port,
    requested_sizes,
    resources,
    several_nodes,
    site,
    slurm_answer,
    slurm_variables,
    srun,
    srun_options,
    step_sizes,
    torchrun,
    torchrun_cores,
    torchrun_options,
    ucx_and_libfabric,
    variable_assignments,
    variable_names,
    versions,
)

_MODULES: tuple[ModuleType, ...] = (
    header,
    directive_syntax,
    option_values,
    resources,
    requested_sizes,
    gres_names,
    log_files,
    srun,
    srun_options,
    binding,
    kill_on_bad_exit,
    torchrun,
    torchrun_cores,
    torchrun_options,
    rendezvous,
    rendezvous_port,
    exit_and_requeue,
    variable_assignments,
    variable_names,
    nccl,
    nccl_network,
    mpi,
    ucx_and_libfabric,
    site,
    containers,
    continuation_lines,
    late_exports,
    ports,
    several_nodes,
    slurm_variables,
    step_sizes,
    slurm_answer,
    versions,
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
