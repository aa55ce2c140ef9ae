"""The secrets of the shell that plans a job are in nothing that will be shown or kept."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import msgspec

from hpc_train.errors import SpecError
from hpc_train.model.job import JobSpec
from hpc_train.model.plan import LaunchPlan
from hpc_train.model.secret import looks_secret
from hpc_train.model.value import Sourced, encode_unit

# Shorter values are words like `true` that stand in many scripts.
_SHORTEST = 8


def check_disclosure(job: Sourced[JobSpec], plan: LaunchPlan) -> None:
    """Look for the values of this shell's secrets in a plan.

    A shell expands `--token $HF_TOKEN` before hpctrain sees it.

    Raises:
        SpecError: the plan holds one; it is not repeated.
    """
    named = {secret.name for secret in plan.secrets}
    hidden = {
        name: value
        for name, value in os.environ.items()
        if len(value) >= _SHORTEST and (name in named or looks_secret(name, value))
    }
    if not hidden:
        return
    texts = tuple(_texts(msgspec.to_builtins(plan, enc_hook=encode_unit)))
    for name, value in hidden.items():
        if any(value in text for text in texts):
            raise SpecError(
                f"{job.origin('command')}: the script would hold the value of {name}, and "
                "scripts are kept and shared",
                f"write `secrets: {{{name}: env}}` and let the program read ${name}",
            )


def _texts(value: Any) -> Iterator[str]:
    """Yield every text in a tree of plain values."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield from _texts(key)
            yield from _texts(inner)
    elif isinstance(value, (list, tuple)):
        for inner in value:
            yield from _texts(inner)
