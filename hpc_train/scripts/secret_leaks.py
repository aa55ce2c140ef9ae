"""Prevents secrets of the current shell from being shown or stored."""

from __future__ import annotations

import os

import msgspec

from hpc_train.base.errors import SpecError
from hpc_train.base.value import encode_unit
from hpc_train.base.variable_names_and_secrets import looks_secret
from hpc_train.jobs.job import SourcedJob
from hpc_train.plans.plan import LaunchPlan

# Shorter values are words like `true` that occur in many scripts.
_SHORTEST = 8


def check_disclosure(job: SourcedJob, plan: LaunchPlan) -> None:
    """Search a plan for the values of this shell's secrets.

    A shell expands `--token $HF_TOKEN` before hpctrain sees it.

    Raises:
        SpecError: the plan contains one; the message does not.
    """
    named = {secret.name for secret in plan.secrets}
    hidden = {
        name: value
        for name, value in os.environ.items()
        if len(value) >= _SHORTEST and (name in named or looks_secret(name, value))
    }
    if not hidden:
        return
    text = msgspec.json.encode(plan, enc_hook=encode_unit)
    for name, value in hidden.items():
        # Without the quotes around it.
        if msgspec.json.encode(value)[1:-1] in text:
            raise SpecError(
                f"{job.origin('command')}: the script would contain the value of {name}, and "
                "scripts are kept and shared",
                f"write `secrets: {{{name}: env}}` and let the program read ${name}",
            )
