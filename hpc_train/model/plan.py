"""LaunchPlan: everything resolved; each value knows its origin and its reason."""

from __future__ import annotations

import re
from typing import Any

import msgspec

from hpc_train.model.job import Elastic
from hpc_train.model.launching import Rendezvous
from hpc_train.model.network import Mode, Scope, Separator
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


class FirstOf(Value, frozen=True, kw_only=True, tag="first"):
    """The first of several shell variables that is set: which one, depends on the site's MPI."""

    names: tuple[str, ...]


class Joined(Value, frozen=True, kw_only=True, tag="joined"):
    """One argument made of literal text and variables: `"$MASTER_ADDR":"$MASTER_PORT"`."""

    parts: tuple[Text | JobVar, ...]


Token = Text | JobVar | FirstOf | Joined


class Secret(Value, frozen=True, kw_only=True):
    """A variable whose value is nowhere written: inherited, or read from a file in the job."""

    name: str
    file: str | None


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


class ContainerPlan(Value, frozen=True, kw_only=True):
    """How a program gets into its image: by words before it (`around`) or by srun (`step`).

    `mounts` and `workdir` are what the image's own description (an EDF) must be given. `passed`
    are variables that an image must not override; they are exported once more with `prefix` in
    front, where the runtime wants that. `forbidden` are characters that a path must not have.
    With `vendors`, what the vendor's script exports is passed on, too.
    """

    runtime: str
    program: str | None
    image: str
    around: tuple[Token, ...]
    step: tuple[Token, ...]
    mounts: tuple[Token, ...]
    workdir: Token
    writable: bool
    passed: tuple[str, ...]
    prefix: str
    forbidden: str
    vendors: bool = False


class Binding(Value, frozen=True, kw_only=True):
    """Which cores and GPUs ranks are held to, in the words of srun, torchrun and mpirun."""

    cpus: str | None = None
    gpus: str | None = None
    numa: str | None = None
    mpirun: str = "none"


class LaunchRequest(Value, frozen=True, kw_only=True):
    """What a launcher is given; `exported` names the variables that every rank must see.

    With `nested`, the job's allocation may have more nodes and GPUs than `topology` says: the
    ranks belong on the first nodes, and must be told how many GPUs are theirs (`gpu_request` is
    the option that says it, `gpu_type` Slurm's word for them in it).
    """

    topology: Topology
    command: tuple[str, ...]
    scheduler: str
    srun_args: tuple[str, ...]
    mpi: str | None
    exported: tuple[str, ...]
    gpu_request: str
    nested: bool
    gpu_type: str | None = None
    args: tuple[str, ...] = ()
    mpirun_args: tuple[str, ...] = ()
    binding: Binding = Binding()
    container: ContainerPlan | None = None
    elastic: Elastic | None = None
    torch: str | None = None
    openmpi: str | None = None


class Definition(Value, frozen=True, kw_only=True):
    """A shell variable that argv names (`JobVar`) and the script defines; `comments` precede it."""

    name: str
    text: str
    comments: tuple[str, ...] = ()


class LaunchShell(Value, frozen=True, kw_only=True):
    """What the script needs beside argv.

    `definitions` are made before the ranks start, and `lines` are bash, written just before argv.
    The interpreter that argv or its agent starts must have the Python `module`.
    """

    definitions: tuple[Definition, ...] = ()
    lines: tuple[str, ...] = ()
    module: str = ""


class Launch(Value, frozen=True, kw_only=True):
    """What a launcher answers.

    `rank_env` gives each rank its name in torch's words, from the launcher's own variables.
    `slots_per_node` is what the scheduler must be asked for: ranks, or one starter of ranks.
    With `forks_ranks` the program starts its own ranks and no RANK is set. `direct` means that
    no launcher stands between the script and the program, so nobody else signals it.
    `agent` is what `node_wrapper` starts, put together on its node, with the rest of argv behind.
    `shell` is what the script needs beside argv.
    """

    argv: tuple[Token, ...]
    rank_env: tuple[tuple[str, Token], ...] = ()
    slots_per_node: int
    forks_ranks: bool = False
    direct: bool = False
    # Not written where it is not set, so that the digests of other launchers stay.
    agent: tuple[Token, ...] | msgspec.UnsetType = msgspec.UNSET
    shell: LaunchShell | msgspec.UnsetType = msgspec.UNSET


class Checks(Value, frozen=True, kw_only=True):
    """What `argv` asks each node before the ranks start; `space` is in MiB.

    `hcas` are pairs of device and port, an empty port is any.
    """

    argv: tuple[Token, ...]
    gpus: int
    program: bool
    image: str | None
    names: bool
    interfaces: tuple[str, ...]
    hcas: tuple[tuple[str, str], ...]
    space: tuple[tuple[str, int], ...]
    memlock: bool
    clock_s: int | None
    timeout_s: int


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
    it needs of that. `notes` are comments on the directives. Defaults are not written down: a
    plan that is not nested keeps the digest that names its runs. `changes` follow the exports of
    `env`, in their order; an empty `backend` is none that anybody may rely on. With
    `passes_signal` the script gets USR1 before the time limit, and hands it on.
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
    notes: tuple[str, ...] = ()
    modules_purge: bool = False
    modules_use: tuple[str, ...] = ()
    modules: tuple[str, ...] = ()
    comment: str = ""
    secrets: tuple[Secret, ...] = ()
    preflight: Checks | None = None
    container: ContainerPlan | None = None
    elastic: Elastic | None = None
    changes: tuple[EnvChange, ...] = ()
    backend: str = ""
    passes_signal: bool = False
