"""Prevents secrets of the current shell from being shown or stored."""

from __future__ import annotations

import ast
import os
from collections.abc import Iterator
from typing import Any

import msgspec

from hpc_train.base.errors import SpecError
from hpc_train.base.value import encode_unit
from hpc_train.base.variable_names_and_secrets import looks_secret, secret_form
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
    texts = tuple(_texts(msgspec.to_builtins(plan, enc_hook=encode_unit)))
    for name, value in hidden.items():
        if any(value in text for text in texts):
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
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError) as failure:
        number = getattr(failure, "lineno", None) or 1
        reason = getattr(failure, "msg", str(failure))
        raise SpecError(f"{where}, line {number}: not a Python program: {reason}") from None
    for name, number in _texts_by_name(tree):
        raise _stored(f"{where}, line {number}: {name} looks like a secret", name)


def _stored(problem: str, name: str) -> SpecError:
    return SpecError(
        f"{problem}, and scripts are kept and shared",
        f"read os.environ[{name!r}] in the program, and name it with `secrets: {{{name}: env}}`",
    )


def _texts_by_name(tree: ast.AST) -> Iterator[tuple[str, int]]:
    """Yield the names that a program gives to texts, if they are names of secrets."""
    for node in ast.walk(tree):
        pairs: list[tuple[ast.AST | None, ast.AST]] = []
        if isinstance(node, ast.Assign):
            pairs = [(target, node.value) for target in node.targets]
        elif isinstance(node, ast.Dict):
            pairs = list(zip(node.keys, node.values, strict=True))
        elif isinstance(node, ast.keyword):
            pairs = [(ast.Name(node.arg or ""), node.value)]
        for target, value in pairs:
            name = _name_of(target)
            if name and isinstance(value, ast.Constant) and isinstance(value.value, str):
                if len(value.value) >= _SHORTEST and looks_secret(name, value.value):
                    yield name, value.lineno


def _name_of(target: ast.AST | None) -> str:
    """Return the name in `NAME`, `x.NAME`, `x["NAME"]` or the key `"NAME"` of a dict."""
    if isinstance(target, ast.Subscript):
        target = target.slice
    if isinstance(target, ast.Name):
        return target.id
    if isinstance(target, ast.Attribute):
        return target.attr
    is_text = isinstance(target, ast.Constant) and isinstance(target.value, str)
    return str(target.value) if is_text and isinstance(target, ast.Constant) else ""


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
