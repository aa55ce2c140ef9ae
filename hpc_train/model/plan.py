"""LaunchPlan: everything resolved; each value knows its origin and its reason."""

from __future__ import annotations

from typing import Any

from hpc_train.model.value import Value


class Setting(Value, kw_only=True):
    """One resolved value: where it came from (`job.yaml:7`, `--set`, `rule`) and why."""

    value: Any
    origin: str
    why: str = ""


class Text(Value, kw_only=True, tag="text"):
    """A literal argument; the script quotes it."""

    text: str


class JobVar(Value, kw_only=True, tag="var"):
    """A shell variable that exists only inside the job, written as a quoted expansion."""

    name: str


Token = Text | JobVar


class Topology(Value, kw_only=True):
    """nodes x tasks x GPUs; `cpus_per_task` cores and as many threads a rank."""

    nodes: int
    tasks_per_node: int
    gpus_per_node: int
    cpus_per_task: int

    @property
    def world_size(self) -> int:
        """Number of ranks of the whole job."""
        return self.nodes * self.tasks_per_node


class LaunchPlan(Value, kw_only=True):
    """What a script is rendered from; nothing is left to decide."""

    name: str
    site: str
    scheduler: str
    template: str
    launcher: str
    topology: Topology
    time_s: int | None
    rendezvous_host: str
    rendezvous_suffix: str
    port: int
    ports: int
    workdir: str | None
    directives: tuple[tuple[str, str], ...]
    env: tuple[tuple[str, str], ...]
    setup: tuple[str, ...]
    argv: tuple[Token, ...]
    rank_wrapper: str
    settings: dict[str, Setting]
    warnings: tuple[str, ...] = ()
