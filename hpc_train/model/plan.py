"""LaunchPlan: everything resolved; each value knows its origin and its reason."""

from __future__ import annotations

import re
from typing import Any

from hpc_train.model.network import Mode, Scope, Separator
from hpc_train.model.site import Rendezvous
from hpc_train.model.value import Value

# What an sbatch option can hold: its values know no quotes, and a blank would end them.
DIRECTIVE_VALUE = re.compile(r"[A-Za-z0-9_.,:;=+@%/&|*()!\[\]^~-]+")


class Setting(Value, frozen=True, kw_only=True):
    """One resolved value: where it came from (`job.yaml:7`, `--set`, `rule`) and why.

    `source` names who says so, where that is somebody else than the files.
    """

    value: Any
    origin: str
    why: str = ""
    source: str = ""


class Text(Value, frozen=True, kw_only=True, tag="text"):
    """A literal argument; the script quotes it."""

    text: str


class JobVar(Value, frozen=True, kw_only=True, tag="var"):
    """A shell variable that exists only inside the job, written as a quoted expansion."""

    name: str


Token = Text | JobVar


class Topology(Value, frozen=True, kw_only=True):
    """nodes x tasks x GPUs; `cpus_per_task` cores and as many threads a rank."""

    nodes: int
    tasks_per_node: int
    gpus_per_node: int
    cpus_per_task: int

    @property
    def world_size(self) -> int:
        """Number of ranks of the whole job."""
        return self.nodes * self.tasks_per_node


class LaunchRequest(Value, frozen=True, kw_only=True):
    """What a launcher is given; `exported` names the variables that every rank must see.

    With `nested`, the job's allocation may have more nodes and GPUs than `topology` says: the
    ranks belong on the first nodes, and must be told how many GPUs are theirs (`gpu_request` is
    the option that says it).
    """

    topology: Topology
    command: tuple[str, ...]
    scheduler: str
    srun_args: tuple[str, ...]
    mpi: str | None
    exported: tuple[str, ...]
    gpu_request: str
    nested: bool


class Launch(Value, frozen=True, kw_only=True):
    """What a launcher answers.

    `rank_env` gives each rank its name in torch's words, from the launcher's own variables.
    `slots_per_node` is what the scheduler must be asked for: ranks, or one starter of ranks.
    With `forks_ranks` the program starts its own ranks and no RANK is set. `direct` means that
    no launcher stands between the script and the program, so nobody else signals it.
    """

    argv: tuple[Token, ...]
    rank_env: tuple[tuple[str, Token], ...] = ()
    slots_per_node: int
    forks_ranks: bool = False
    direct: bool = False


class EnvChange(Value, frozen=True, kw_only=True, omit_defaults=True):
    """What happens to a variable beside the plain exports; a `value` of None unsets it."""

    name: str
    value: str | None
    mode: Mode = "set"
    scope: Scope = "job"
    separator: Separator = ":"


class LaunchPlan(Value, frozen=True, kw_only=True, omit_defaults=True):
    """What a script is rendered from; nothing is left to decide.

    `directives` are sbatch options in order, with an empty value for a bare flag; `time_s` is the
    limit in seconds that an executor without a scheduler enforces itself. With `nested` the script
    runs on the first nodes of an allocation that is at least as large, and `directives` say what
    it needs of that. Defaults are not written down: a plan that is not nested keeps the digest
    that names its runs. `changes` follow the exports of `env`, in their order; an empty `backend`
    is none that anybody may rely on.
    """

    name: str
    site: str
    scheduler: str
    template: str
    launcher: str
    topology: Topology
    time_s: int | None
    rendezvous: Rendezvous
    workdir: str | None
    directives: tuple[tuple[str, str], ...]
    env: tuple[tuple[str, str], ...]
    setup: tuple[str, ...]
    launch: Launch
    settings: dict[str, Setting]
    warnings: tuple[str, ...]
    nested: bool = False
    changes: tuple[EnvChange, ...] = ()
    backend: str = ""


class Turn(Value, frozen=True, kw_only=True):
    """A run that waits for its turn in an allocation; it may take `time_s` seconds."""

    run_id: str
    time_s: int | None


class Allocation(Value, frozen=True, kw_only=True):
    """One request for nodes, and the runs that use them one after the other."""

    name: str
    site: str
    directives: tuple[tuple[str, str], ...]
    turns: tuple[Turn, ...]
    warnings: tuple[str, ...]
