"""The keys of a job as keywords of `submit`, for type checkers and editors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypedDict


class JobKeys(TypedDict, total=False):
    """Keys of a job file and of its `resources`; docs/files.md has their meaning."""

    name: str
    command: Sequence[str]
    launcher: str | None
    launcher_args: Sequence[str]
    elastic: Mapping[str, Any]
    container: Mapping[str, Any]
    torch: str
    backend: str
    mpi: bool
    nodes: int | None
    tasks_per_node: int | None
    gpus_per_node: int | str | None
    gpu_type: str | None
    cpus_per_task: int | None
    mem: str | None
    time: str | None
    exclusive: bool | None
    account: str | None
    partition: str | None
    qos: str | None
    constraint: str | None
    directives: Mapping[str, str | int | bool]
    storage: Sequence[str]
    env: Mapping[str, str | int | float]
    modules: Sequence[str]
    comment: str | None
    secrets: Mapping[str, str]
    setup: Sequence[str]
    signal_before_end: str | None
    trainer: Mapping[str, Any] | None
    lifecycle: Mapping[str, Any] | None
    workdir: str | None
    sites: Mapping[str, Mapping[str, Any]]
