"""`hpctrain bench`: options -> a request of a job; the study of the strategies on this machine."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from hpc_train.base.errors import PlanError, SpecError
from hpc_train.base.processes import python_command
from hpc_train.base.values import Value
from hpc_train.jobs.collectives import COLLECTIVES, message_of, message_sizes, parse_size
from hpc_train.jobs.override import Override, option_override
from hpc_train.jobs.strategies import STRATEGIES
from hpc_train.logs.collect import logs_of
from hpc_train.runs.run import RunFolder
from hpc_train.scripts.prepare import Prepared
from hpc_train.sites.load import Machine, this_machine

MODULE = "hpc_train.trainer.collectives"
_ORIGIN = "hpctrain bench"
_TIME = "30m"
# The transport is a condition of each bandwidth; NCCL names it only if it is asked to.
_NCCL = {"NCCL_DEBUG": "INFO", "NCCL_DEBUG_SUBSYS": "INIT,NET"}


class BenchOptions(Value, frozen=True, kw_only=True):
    """What is measured; sizes as they were typed."""

    collective: str
    smallest: str
    largest: str
    factor: int
    iterations: int
    warmup: int
    dtype: str
    root: int
    check: bool
    backend: str

    def sizes(self) -> list[int]:
        """Return the message sizes in bytes.

        Raises:
            SpecError: a size is wrong, or the smallest is larger than the largest.
        """
        smallest, largest = _size("smallest", self.smallest), _size("largest", self.largest)
        if smallest > largest:
            raise SpecError(f"--smallest {self.smallest} is more than --largest {self.largest}")
        return list(message_sizes(smallest, largest, self.factor))


def _size(option: str, text: str) -> int:
    try:
        return parse_size(text)
    except ValueError as failure:
        raise SpecError(f"--{option}: {failure}") from None


def bench_overrides(options: BenchOptions, ranks: str | None = None) -> tuple[Override, ...]:
    """Return the keys of the job that measures, which options of the command line override.

    `ranks` is the value of --ranks, as it was typed.

    Raises:
        SpecError: a size is wrong.
    """
    options.sizes()
    keys = {
        "name": f"bench-{options.collective.replace('_', '-')}",
        "command": [python_command(), "-m", MODULE, options.collective, *_arguments(options)],
        "time": _TIME,
        **{f"env.{name}": value for name, value in _NCCL.items()},
    }
    own = (Override(key=key, value=value, origin=_ORIGIN) for key, value in keys.items())
    if ranks is None:
        return tuple(own)
    return (*own, option_override("tasks_per_node", ranks, "--ranks"))


def _arguments(options: BenchOptions) -> Iterator[str]:
    for name in ("smallest", "largest", "factor", "iterations", "warmup", "dtype"):
        yield from (f"--{name}", str(getattr(options, name)))
    if options.root:
        yield from ("--root", str(options.root))
    if options.backend != "auto":
        yield from ("--backend", options.backend)
    if not options.check:
        yield "--no-check"


def check_ranks(prepared: Prepared, options: BenchOptions) -> None:
    """Check that each job has ranks between which the messages can be sent.

    Raises:
        PlanError: one rank, a root that is none of them, or messages without a part for each.
    """
    collective = COLLECTIVES[options.collective]
    for point in prepared.points:
        ranks = point.plan.topology.world_size
        if ranks < 2:
            raise PlanError(
                f"{collective.name} needs at least 2 ranks, and this job has 1",
                f"hpctrain bench {collective.name} --ranks 2",
            )
        if options.root >= ranks:
            raise PlanError(f"--root {options.root}: the ranks are 0 to {ranks - 1}")
        sizes = options.sizes()
        if not message_of(collective, sizes[-1], options.dtype, ranks).elements:
            raise PlanError(
                f"--largest {options.largest}: {collective.name} of {options.dtype} on {ranks} "
                "ranks needs larger messages: 16 B for each rank",
            )


def bench_table(folder: RunFolder) -> str:
    """Return the table that the first rank printed, without the lines of NCCL around it."""
    texts = (
        log.path.read_text(encoding="utf-8", errors="replace")
        for log in logs_of(folder.run_id, [folder.logs], folder.path)
    )
    tables = (text.splitlines() for text in texts if "algbw" in text)
    return "\n".join(line for lines in tables for line in lines if line.startswith(("#", "   ")))


NAME = "bench-train"
MOST_RANKS = 8
_TRAINER, _BATCH = "hpc_train.trainer.train", 32
_TRAIN_ORIGIN = "hpctrain bench train"


def sizes(machine: Machine) -> tuple[int, ...]:
    """Return the numbers of ranks: 1, 2, 4 and 8, as far as there are GPUs or else cores."""
    most = min(machine.gpus or machine.cpus, MOST_RANKS)
    return tuple(2**power for power in range(4) if 2**power <= most) or (1,)


def train_overrides(
    root: Path, strategies: Sequence[str], steps: int, machine: Machine | None = None
) -> tuple[Override, ...]:
    """Return what differs from the study of the strategies, for this machine.

    Each run of the command is a new study, whose folder below `root` does not exist yet.
    """
    machine = machine or this_machine()
    taken = {path.name for path in root.glob(f"{NAME}*")}
    names = (NAME, *(f"{NAME}-{number}" for number in range(2, len(taken) + 2)))
    ranks = "gpus_per_node" if machine.gpus else "tasks_per_node"
    arguments = f"--global-batch-size {_BATCH} --steps {steps} --no-accuracy"
    keys = {
        "name": next(name for name in names if name not in taken),
        "axes": {"strategy": list(strategies or STRATEGIES), ranks: list(sizes(machine))},
        "command": [python_command(), "-m", _TRAINER, *arguments.split()],
    }
    return tuple(
        Override(key=key, value=value, origin=_TRAIN_ORIGIN) for key, value in keys.items()
    )


def check_this_machine(prepared: Prepared) -> None:
    """Refuse the site of a cluster.

    Raises:
        PlanError: it is one.
    """
    if not prepared.site.batch.this_machine:
        raise PlanError(
            f"bench train measures this machine, but the site is {prepared.site.name}",
            "hpctrain bench train --site local, in a job of the cluster",
        )
