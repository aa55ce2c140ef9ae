"""Variables whose value a rule can judge."""

from __future__ import annotations

from collections.abc import Iterator

from hpc_train.lint.rule import Subject
from hpc_train.lint.script_variables import Assignment


def exported_values(subject: Subject, *names: str) -> Iterator[Assignment]:
    """Yield the exported variables of these names whose value is known and not empty."""
    for found in subject.script.settings(*names):
        if found.exported and found.literal and found.value:
            yield found
