"""Allocation: one request of nodes for several runs, which use them one after the other."""

from __future__ import annotations

from hpc_train.model.value import Value


class NestedRun(Value, frozen=True, kw_only=True):
    """A run in a shared allocation, with a time limit of `time_s` seconds."""

    run_id: str
    time_s: int | None


class Allocation(Value, frozen=True, kw_only=True):
    """One allocation, and the runs that use it one after the other."""

    name: str
    site: str
    directives: tuple[tuple[str, str], ...]
    turns: tuple[NestedRun, ...]
    warnings: tuple[str, ...]
