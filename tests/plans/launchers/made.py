"""Requests made of parts, and argv as a line of words."""

from collections.abc import Sequence

from hpc_train.jobs.job import Topology
from hpc_train.plans.plan import FirstOf, Joined, Launch, LaunchRequest, Text, Token
from hpc_train.sites.batch_system import find_batch_system


def request(
    scheduler: str = "slurm", tasks: int = 2, nodes: int = 2, **keys: object
) -> LaunchRequest:
    values = {
        "topology": Topology(nodes=nodes, tasks_per_node=tasks, gpus_per_node=0, cpus_per_task=3),
        "command": ("python", "t.py"),
        "batch": find_batch_system(scheduler),
        "srun_args": (),
        "mpi": None,
        "exported": ("OMP_NUM_THREADS",),
        "gpu_request": "gpus-per-node",
        "nested": False,
        **keys,
    }
    return LaunchRequest(**values)  # type: ignore[arg-type] # built from parts in tests


def line(tokens: Sequence[Token]) -> str:
    """Return tokens as people read them, variables with a `$`."""
    return " ".join(map(word, tokens))


def words(launch: Launch) -> str:
    """Return the whole argv of a launch."""
    return line(launch.argv)


def word(token: Token) -> str:
    """Return a token as people read it, a variable with a `$`."""
    if isinstance(token, Joined):
        return "".join(map(word, token.parts))
    if isinstance(token, FirstOf):
        return "$" + "|".join(token.names)
    return token.text if isinstance(token, Text) else f"${token.name}"
