"""Runs -> where and with what they ran, said once for all of them, and what is known of each."""

from __future__ import annotations

from collections.abc import Sequence

from hpc_train.model.report import Fact, RunDetail
from hpc_train.model.run import Run


def provenance(runs: Sequence[Run]) -> tuple[Fact, ...]:
    """Return the facts about runs, each value with the number of runs that have it."""
    return ()


def details(runs: Sequence[Run]) -> tuple[tuple[RunDetail, ...], dict[str, str]]:
    """Return what can be looked up of each run, and the text of each script by its digest."""
    return (), {}
