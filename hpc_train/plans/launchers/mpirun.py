"""mpirun of Open MPI: mapping and binding always explicit, one `-x` for each variable.

Without `--bind-to`, Open MPI 4 binds to a core when there are two ranks or fewer and to a socket
above, so a rank with several threads would lose its cores. No option selects TCP, as in other
launchers, because that would disable InfiniBand.
"""

from __future__ import annotations

from hpc_train.base.value import at_least
from hpc_train.base.variable_names_and_secrets import FROM_SCRIPT, RENDEZVOUS
from hpc_train.plans.explanations import Reason
from hpc_train.plans.launchers.base import Launcher, Program, texts, wrapped
from hpc_train.plans.plan import (
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


def command(request: LaunchRequest) -> Launch:
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
    topology = request.topology
    word = _bind_word(request.binding.mpirun, request.openmpi)
    ranks, cores = f"ppr:{topology.tasks_per_node}:node", topology.cpus_per_task
    mapped: Token = Text(text=f"{ranks}:PE={cores}" if word == "core" else ranks)
    if word == "core" and cores is None:
        mapped = Joined(parts=(Text(text=f"{ranks}:PE="), JobVar(name="cpus_per_rank")))
    return (*texts("--map-by"), mapped, *texts("--bind-to", word))


def _bind_word(word: str, release: str | None) -> str:
    """Return the version's name of a socket, which is a package in Open MPI 5."""
    if word not in ("socket", "package"):
        return word
    return "package" if at_least(release, "5") else "socket"


MPIRUN = Program(
    name="mpirun",
    options={
        "-np": Reason(why="all ranks; Open MPI takes the hosts from Slurm"),
        "--hostfile": Reason(why="the nodes of the job; Open MPI may be built without PBS"),
        "--host": Reason(why="the hosts of the job, each with as many slots as ranks"),
        "--map-by": Reason(why="as many ranks on each node as the job requests", trap="F33"),
        "--bind-to": Reason(why="its default would hold a rank to one core or socket", trap="F33"),
        "-x": Reason(why="mpirun hands on only what it is told to", trap="F33"),
    },
)
LAUNCHER = Launcher(
    command=command,
    programs=(MPIRUN,),
    mpi=True,
    open_mpi=True,
    program="mpirun",
    package="Open MPI (on Debian: apt-get install openmpi-bin)",
    typed={"np": "--ntasks", "n": "--ntasks", "npernode": "--tasks-per-node"},
)
