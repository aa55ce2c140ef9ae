"""mpirun of Open MPI, mpiexec of Cray PALS and TACC's ibrun, whose MPI starts the ranks.

mpirun: mapping and binding always explicit, one `-x` for each variable. Without `--bind-to`, Open
MPI 4 binds to a core when there are two ranks or fewer and to a socket above, so a rank with
several threads would lose its cores. No option selects TCP, as in other launchers, because that
would disable InfiniBand.

mpiexec starts ranks on HPE Cray systems with PBS and passes on all variables of the script. Its
options: HPE Cray PALS, mpiexec(1).

Here, too: one process on each node of a job of PBS, by PALS, by Open MPI, or by PBS itself. PBS's
own pbsdsh is not used: it ends with 0 although one of its processes failed.
"""

from hpc_train.base.errors import PlanError
from hpc_train.base.values import older
from hpc_train.base.variable_names_and_secrets import FROM_SCRIPT, RENDEZVOUS
from hpc_train.jobs.job import Topology
from hpc_train.plans.launchers.base import Launcher, texts, wrapped
from hpc_train.plans.plan import (
    FirstOf,
    JobVar,
    JobWords,
    Joined,
    Launch,
    LaunchRequest,
    LaunchShell,
    Text,
    Token,
)

_AS_ROOT = LaunchShell(
    lines=(
        "# mpirun refuses root, which is the user in many images.",
        '[ "$(id -u)" != 0 ] || export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1',
    )
)


# The script defines the program, which gives mpirun daemons on the other hosts without ssh, and the
# slots of each host.
_ON_HOSTS = JobVar(name="mpi_hosts")
_SLOTS = JobVar(name="mpi_slots")
# The copy of the job's folder may have another name on each host.
_IN_FOLDER = texts("bash", "-c", 'cd -- "${HPCTRAIN_WORKDIR:-.}" && exec "$@"', "folder")


def mpirun(request: LaunchRequest) -> Launch:
    """Return `mpirun -np W …`; inside a Slurm job Open MPI takes the hosts from Slurm.

    On several hosts of a list, the script runs on each, and mpirun on the first.
    """
    topology = request.topology
    on_hosts = request.batch.host_list and topology.nodes > 1
    argv = (
        *((*texts("bash", "-c"), _ON_HOSTS, *texts("hosts")) if on_hosts else ()),
        *texts("mpirun", "-np", topology.world_size),
        *hosts(request),
        *_places(request),
        *passed_on(request),
        *texts(*request.mpirun_args, *request.args),
        *(_IN_FOLDER if on_hosts else ()),
        *wrapped(request),
    )
    rank_env: tuple[tuple[str, Token], ...] = (
        ("RANK", JobVar(name="OMPI_COMM_WORLD_RANK")),
        ("WORLD_SIZE", JobVar(name="OMPI_COMM_WORLD_SIZE")),
        ("LOCAL_RANK", JobVar(name="OMPI_COMM_WORLD_LOCAL_RANK")),
        ("LOCAL_WORLD_SIZE", JobVar(name="OMPI_COMM_WORLD_LOCAL_SIZE")),
    )
    slots = topology.tasks_per_node
    of_hosts = f'mpi_slots="${{HPCTRAIN_ADDRESSES//,/:{slots},}}:{slots}"'
    shell = LaunchShell(lines=(*_AS_ROOT.lines, of_hosts)) if on_hosts else _AS_ROOT
    return Launch(argv=argv, rank_env=rank_env, slots_per_node=slots, shell=shell)


def hosts(request: LaunchRequest) -> tuple[Token, ...]:
    """Return the option with the hosts, unless Open MPI takes them from the scheduler."""
    if request.batch.host_list and request.topology.nodes > 1:
        return (*texts("--host"), _SLOTS)
    if request.batch.this_machine or request.batch.host_list:
        return texts("--host", f"localhost:{request.topology.tasks_per_node}")
    file = request.batch.hostfile
    return (*texts("--hostfile"), JobVar(name=file)) if file else ()


def passed_on(request: LaunchRequest) -> tuple[Token, ...]:
    """Return an option for each variable that the ranks must see."""
    if request.batch.host_list and request.topology.nodes > 1:
        # The script sets all others on each host, some to other values.
        return texts("-x", RENDEZVOUS[1])
    passed = request.container.passed if request.container else ()
    of_script = RENDEZVOUS if request.plain else FROM_SCRIPT
    names = dict.fromkeys((*of_script, *request.exported, *passed))
    words = tuple(token for name in names for token in texts("-x", name))
    # A daemon that ssh starts has the variables of a login, not those of modules and setup.
    by_ssh = request.batch.hostfile and request.topology.nodes > 1
    return (*words, JobWords(name="mpi_exports")) if by_ssh else words


def _places(request: LaunchRequest) -> tuple[Token, ...]:
    """Only ranks that are bound to cores are mapped with their number of cores (PE)."""
    topology, word = request.topology, request.binding.mpirun
    if word in ("socket", "package"):
        # A socket is a package in Open MPI 5.
        word = "package" if request.openmpi and not older(request.openmpi, "5") else "socket"
    ranks, cores = f"ppr:{topology.tasks_per_node}:node", topology.cpus_per_task
    mapped: Token = Text(text=f"{ranks}:PE={cores}" if word == "core" else ranks)
    if word == "core" and cores is None:
        mapped = Joined(parts=(Text(text=f"{ranks}:PE="), JobVar(name="cpus_per_rank")))
    return (*texts("--map-by"), mapped, *texts("--bind-to", word))


MPIRUN = Launcher(
    command=mpirun,
    programs=("mpirun",),
    mpi=True,
    open_mpi=True,
    program="mpirun",
    package="Open MPI (on Debian: apt-get install openmpi-bin)",
    typed={"np": "--ntasks", "n": "--ntasks", "npernode": "--tasks-per-node"},
)


# PALS's own variables, and those of its PMI.
_PALS = FirstOf(names=("PALS_RANKID", "PMI_RANK"))
_PALS_LOCAL = FirstOf(names=("PALS_LOCAL_RANKID", "PMI_LOCAL_RANK"))


def mpiexec(request: LaunchRequest) -> Launch:
    """Return `mpiexec -n W --ppn P …`: it takes the hosts from PBS."""
    topology = request.topology
    argv = (
        *texts("mpiexec", "-n", topology.world_size, "--ppn", topology.tasks_per_node),
        *_depth(request),
        *texts(*request.args),
        *wrapped(request),
    )
    rank_env = _ranks(topology, _PALS, _PALS_LOCAL)
    return Launch(argv=argv, rank_env=rank_env, slots_per_node=topology.tasks_per_node)


def _depth(request: LaunchRequest) -> tuple[Token, ...]:
    """Bind each rank as the site says, else to as many neighbouring cores as it has.

    PALS numbers the second threads of the cores after all first ones: a depth in threads would give
    two ranks the same cores.
    """
    if request.binding.cpus:
        return texts("--cpu-bind", request.binding.cpus)
    cores = request.topology.cpus_per_task
    depth: Token = Joined(parts=(Text(text="--depth="), JobVar(name="cpus_per_rank")))
    if cores is not None:
        depth = Text(text=f"--depth={max(1, cores // request.threads_per_core)}")
    return (depth, *texts("--cpu-bind", "depth"))


MPIEXEC = Launcher(
    command=mpiexec,
    programs=("mpiexec",),
    mpi=True,
    signal_obstacle="which signals mpiexec forwards is not documented",
    program="mpiexec",
    package="Cray PALS",
    typed={"n": "--ntasks", "np": "--ntasks", "ppn": "--tasks-per-node"},
)


def _ranks(topology: Topology, rank: FirstOf, local_rank: FirstOf) -> tuple[tuple[str, Token], ...]:
    """Return the variables of a rank whose numbers have several names."""
    several = topology.tasks_per_node > 1
    return (
        ("RANK", rank),
        ("WORLD_SIZE", Text(text=str(topology.world_size))),
        ("LOCAL_RANK", local_rank if several else Text(text="0")),
        ("LOCAL_WORLD_SIZE", Text(text=str(topology.tasks_per_node))),
    )


# Open MPI, MVAPICH, and Hydra of Intel MPI and MPICH: the module determines which one.
_MPI = FirstOf(names=("OMPI_COMM_WORLD_RANK", "MV2_COMM_WORLD_RANK", "PMI_RANK"))
_MPI_LOCAL = FirstOf(
    names=(
        "OMPI_COMM_WORLD_LOCAL_RANK",
        "MV2_COMM_WORLD_LOCAL_RANK",
        "MPI_LOCALRANKID",
        "PMI_LOCAL_RANK",
    )
)


def ibrun(request: LaunchRequest) -> Launch:
    """Return `ibrun -n W -o 0 …`: it takes hosts from Slurm, and binds ranks itself.

    Raises:
        PlanError: the job is one of several in an allocation.
    """
    topology = request.topology
    if request.nested:
        # It places ranks by the slots of the whole allocation, not by those of a run.
        raise PlanError(
            "the launcher ibrun cannot use only a part of an allocation (placement nested)",
            "leave placement out: independent is the default",
        )
    argv = (
        *texts("ibrun", "-n", topology.world_size, "-o", 0, *request.args),
        *wrapped(request),
    )
    rank_env = _ranks(topology, _MPI, _MPI_LOCAL)
    return Launch(argv=argv, rank_env=rank_env, slots_per_node=topology.tasks_per_node)


IBRUN = Launcher(
    command=ibrun,
    programs=("ibrun",),
    mpi=True,
    slurm_only=True,
    signal_obstacle="which signals ibrun forwards depends on its MPI",
    program="ibrun",
)


# The script defines it: a shell program around pbs_tmrsh, which passes on no variable.
_EACH_NODE = JobVar(name="each_node")


def by_tmrsh(request: LaunchRequest, *words: str) -> tuple[Token, ...]:
    """Return the program of the script that starts its arguments on each node with pbs_tmrsh."""
    return (*texts("bash", "-c"), _EACH_NODE, *texts("each_node"))


def by_pals(request: LaunchRequest, *words: str) -> tuple[Token, ...]:
    """Return Cray PALS's mpiexec with one process on each node, not bound to a core."""
    counts = ("-n", request.topology.nodes, "--ppn", 1)
    return texts("mpiexec", *counts, "--cpu-bind", "none")


def by_openmpi(request: LaunchRequest, *words: str) -> tuple[Token, ...]:
    """Return Open MPI's mpirun with one process on each node, not bound to a core."""
    return (
        *texts("mpirun", "-np", request.topology.nodes),
        *hosts(request),
        *texts("--map-by", "ppr:1:node", "--bind-to", "none"),
        *passed_on(request),
        *texts(*request.mpirun_args),
    )
