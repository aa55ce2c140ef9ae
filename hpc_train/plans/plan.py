"""LaunchPlan: all resolved values, each with its origin and reason."""

from typing import Any, Literal

import msgspec

from hpc_train.base.values import Value
from hpc_train.jobs.job import Elastic, JobLifecycle, Topology
from hpc_train.sites.batch_system import BatchSystem
from hpc_train.sites.partition import Mode, PluginCheck, Rendezvous
from hpc_train.sites.profile import HostList


class Setting(Value, frozen=True, kw_only=True):
    """A resolved value, its `origin` (`job.yaml:7`, `--set`, `rule`), and the source of a rule."""

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

    def __str__(self) -> str:
        """Return the variable as `explain` prints it."""
        return f"${self.name}"


class JobWords(Value, frozen=True, kw_only=True, tag="words"):
    """An array of the job's shell, written as one argument for each of its items."""

    name: str

    def __str__(self) -> str:
        """Return the array as `explain` prints it."""
        return f"${{{self.name}[@]}}"


class FirstOf(Value, frozen=True, kw_only=True, tag="first"):
    """The first of several shell variables that is set, depending on the site's MPI."""

    names: tuple[str, ...]


class Joined(Value, frozen=True, kw_only=True, tag="joined"):
    """One argument that consists of literal text and variables: `"$MASTER_ADDR":"$MASTER_PORT"`."""

    parts: tuple[Text | JobVar, ...]


Token = Text | JobVar | JobWords | FirstOf | Joined


class Secret(Value, frozen=True, kw_only=True):
    """A variable whose value is never written: inherited, or read from a file in the job."""

    name: str
    file: str | None


class ContainerPlan(Value, frozen=True, kw_only=True):
    """How a program starts in its image: with a command before it (`around`) or by srun (`step`).

    `mounts` and `workdir` are for the definition of the image (an EDF). `passed` are variables that
    an image must not override; they are exported a second time with the prefix `prefix`, if the
    runtime needs it. `forbidden` are characters that a path must not contain. With `vendors`, the
    exports of the vendor's script are passed on as well.
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
    """Binding of ranks to cores and GPUs, as options of srun, torchrun and mpirun."""

    cpus: str | None = None
    gpus: str | None = None
    numa: str | None = None
    mpirun: str = "none"


class LaunchRequest(Value, frozen=True, kw_only=True):
    """The input of a launcher; `exported` names the variables that every rank must see.

    With `nested`, the allocation may have more nodes and GPUs than `topology`: the ranks run on its
    first nodes and state their GPUs (`gpu_request`, `gpu_type`). `plain`: the run is not tracked.
    """

    topology: Topology
    command: tuple[str, ...]
    batch: BatchSystem
    srun_args: tuple[str, ...]
    mpi: str | None
    exported: tuple[str, ...]
    gpu_request: str
    nested: bool
    gpu_type: str | None = None
    args: tuple[str, ...] = ()
    mpirun_args: tuple[str, ...] = ()
    binding: Binding = Binding()
    threads_per_core: int = 1
    container: ContainerPlan | None = None
    elastic: Elastic | None = None
    torch: str | None = None
    openmpi: str | None = None
    plain: bool = False


class Definition(Value, frozen=True, kw_only=True):
    """A shell variable that argv names (`JobVar`) and the script defines; `comments` precede it."""

    name: str
    text: str
    comments: tuple[str, ...] = ()


class LaunchShell(Value, frozen=True, kw_only=True):
    """The parts of a script in addition to argv.

    `definitions` are evaluated before the ranks start; `lines` are bash, immediately before argv.
    The interpreter that argv or its agent starts must have the Python `module`.
    """

    definitions: tuple[Definition, ...] = ()
    lines: tuple[str, ...] = ()
    module: str = ""


class Launch(Value, frozen=True, kw_only=True):
    """The output of a launcher.

    `rank_env` sets torch's rank variables from those of the launcher. `slots_per_node` is the
    number of tasks to request per node: ranks, or one agent. With `forks_ranks` the program starts
    its own ranks and no RANK is set. `direct` means that there is no launcher between the script
    and the program, so the script must signal it. `agent` is the command that `node_wrapper`
    starts, assembled on its node, followed by the rest of argv; `shell` is in addition to argv.
    """

    argv: tuple[Token, ...]
    rank_env: tuple[tuple[str, Token], ...] = ()
    slots_per_node: int
    forks_ranks: bool = False
    direct: bool = False
    # Not written if it is not set, so that the digests of other launchers do not change.
    agent: tuple[Token, ...] | msgspec.UnsetType = msgspec.UNSET
    shell: LaunchShell | msgspec.UnsetType = msgspec.UNSET


class Checks(Value, frozen=True, kw_only=True):
    """The checks that `argv` runs on each node before the ranks start; `space` is in MiB.

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
    """A change of a variable in addition to the exports, of the whole job or in each rank."""

    name: str
    value: str
    mode: Mode = "set"
    scope: Literal["job", "ranks"] = "job"


class LaunchPlan(Value, frozen=True, kw_only=True, omit_defaults=True):
    """The input of a script; all values are final.

    `directives` are sbatch options in order, with an empty value for an option without value; the
    script of a `plain` plan does not track its run; an executor without a scheduler enforces the
    limit `time_s` [s]. With `nested` the script runs on the first nodes of an allocation. Defaults
    are not written, so that names of runs keep their digest. `changes` follow the exports of `env`;
    no `backend`: none is guaranteed. With `passes_signal` the script forwards USR1, with
    `lifecycle` it queues its job again. `plugin_argv` looks for `plugin` on the nodes. `host_list`:
    the machines of the site.
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
    env: tuple[tuple[str, str | JobVar], ...]
    setup: tuple[str, ...]
    launch: Launch
    settings: dict[str, Setting]
    warnings: tuple[str, ...]
    nested: bool = False
    plain: bool = False
    # In run.json of earlier versions.
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
    plugin: PluginCheck | None = None
    plugin_argv: tuple[Token, ...] = ()
    lifecycle: JobLifecycle | None = None
    host_list: HostList | None = None


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
