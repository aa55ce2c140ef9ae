"""Prevents secrets of the current shell from being shown or stored."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from hpc_train.errors import SpecError
from hpc_train.model.job import SourcedJob
from hpc_train.model.plan import LaunchPlan
from hpc_train.model.run import Run
from hpc_train.model.value import encode_unit
from hpc_train.model.variable_names_and_secrets import looks_secret, without_forms

# Shorter values are words like `true` that occur in many scripts.
_SHORTEST = 8
# Files that contain text of users; records contain numbers.
_WORDS = (".json", ".txt", ".md", ".csv", ".html", ".yaml", ".sbatch")


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


class Hidden:
    """Secrets of runs and of this shell, which are removed from bundles."""

    def __init__(self, values: dict[str, str]) -> None:
        self._texts = [
            (form.encode(), f"<{name}>".encode())
            for name, value in sorted(values.items())
            for form in {value, json.dumps(value)[1:-1]}
        ]

    @classmethod
    def of(cls, runs: Sequence[Run]) -> Hidden:
        """Return the secrets of runs, from the variables and files that they name."""
        plans = [run.manifest.plan for run in runs if run.manifest]
        named = {secret.name: secret.file for plan in plans for secret in plan.secrets}
        values = {name: _from_file(file) for name, file in named.items() if file}
        values |= {n: v for n, v in os.environ.items() if n in named or looks_secret(n, v)}
        return cls({name: value for name, value in values.items() if len(value) >= _SHORTEST})

    def without(self, name: str, content: bytes) -> bytes:
        """Return the content of a file without these secrets and similar texts."""
        for secret, instead in self._texts:
            content = content.replace(secret, instead)
        if not name.endswith(_WORDS):
            return content
        return without_forms(content.decode("utf-8", "surrogateescape")).encode(
            "utf-8", "surrogateescape"
        )


def _from_file(name: str) -> str:
    try:
        return Path(name).read_text(errors="replace").strip()
    except OSError:
        return ""


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
