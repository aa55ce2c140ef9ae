"""Prevents secrets of the current shell from being shown or stored."""

from __future__ import annotations

import ast
import os
import re

import msgspec

from hpc_train.base.errors import SpecError
from hpc_train.base.value import encode_unit
from hpc_train.base.variable_names_and_secrets import looks_secret, secret_form
from hpc_train.jobs.job import SourcedJob
from hpc_train.plans.plan import LaunchPlan

# Shorter values are words like `true` that occur in many scripts.
_SHORTEST = 8
# `NAME = "…"`, `x["NAME"] = "…"`, `"NAME": "…"` and `f(NAME="…")`.
_NAMED = re.compile(
    r"""(\w{1,80})(?:["']?\]?\s{0,9}(?::[^=]{0,80})?=|["']\s{0,9}:)\s{0,9}["']([^"']{8,500})["']"""
)


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


def check_program(text: str, where: str) -> None:
    """Search a Python program that will be stored for secrets: of this shell, or written in it.

    Raises:
        SpecError: it contains one; the message does not. Or it is not a Python program.
    """
    for name, value in os.environ.items():
        if len(value) >= _SHORTEST and looks_secret(name, value) and value in text:
            raise _stored(f"{where}: it contains the value of {name}", name)
    for number, line in enumerate(text.splitlines(), 1):
        if form := secret_form(line):
            raise _stored(f"{where}, line {number}: it contains a secret ({form})", "NAME")
        for name, value in _NAMED.findall(line):
            if looks_secret(name, value):
                raise _stored(f"{where}, line {number}: {name} looks like a secret", name)
    try:
        ast.parse(text)
    except (SyntaxError, ValueError) as failure:
        number = getattr(failure, "lineno", None) or 1
        reason = getattr(failure, "msg", str(failure))
        raise SpecError(f"{where}, line {number}: not a Python program: {reason}") from None


def _stored(problem: str, name: str) -> SpecError:
    return SpecError(
        f"{problem}, and scripts are kept and shared",
        f"read os.environ[{name!r}] in the program, and name it with `secrets: {{{name}: env}}`",
    )
