"""Smoke job of a site: checks that all ranks connect and add up a sum, and measures an all-reduce.

`python -m hpc_train.trainer.smoke` is started like the ranks of any job. Rank 0 prints one event
`smoke`, with the network interface whose kernel counter grew most during the all-reduce.
"""

import socket
import time
from collections.abc import Mapping
from pathlib import Path

import torch
from torch import distributed

from hpc_train.trainer import WorkloadError
from hpc_train.trainer.emit import emit
from hpc_train.trainer.measurements import interface_bytes
from hpc_train.trainer.process_group import RankGroup, joined, of_ranks
from hpc_train.trainer.spawn_ranks import exit_code_of, leave, run_ranks

MEBIBYTE = 1024**2
SIZES = {"cuda": 256 * MEBIBYTE, "cpu": 16 * MEBIBYTE}
WARMUP, TIMED = 2, 5
ADAPTERS = Path("/sys/class/infiniband")
# Bytes; a smaller number is background traffic.
NOISE = 1_000_000
# InfiniBand counts words of four bytes.
_WORD = 4


def main() -> int:
    """Run the smoke job on every rank that the environment describes; return the exit code."""
    return run_ranks(smoke)


def smoke() -> int:
    """Run the smoke job as one rank; return its exit code."""
    with joined("auto", "auto") as group:
        _measure(group)
    return 0


def _measure(group: RankGroup) -> None:
    hosts = _hosts(group)
    size = SIZES[group.device.type]
    before = sent_bytes()
    seconds = _reduce(group, size)
    interface = busiest(before, sent_bytes()) if len(set(hosts)) > 1 else ""
    # Each rank sends and receives 2 (n - 1) / n of the buffer: nccl-tests' bus bandwidth.
    factor = 2 * (group.world_size - 1) / group.world_size
    if group.rank == 0:
        emit(
            event="smoke",
            ranks=group.world_size,
            nodes=len(set(hosts)),
            hosts=hosts,
            backend=group.backend,
            launcher=group.launcher,
            device=group.device.type,
            interface=interface,
            message_size=size,
            busbw=size * factor / seconds / 1e9 if factor else None,
            torch=torch.__version__,
        )


def _hosts(group: RankGroup) -> list[str]:
    """Return the host of each rank, and check a sum over all ranks."""
    if group.backend == "none":
        return [socket.gethostname()]
    expected = group.world_size * (group.world_size - 1) / 2
    total = group.sums([float(group.rank)])[0]
    if total != expected:
        raise WorkloadError(f"the sum of all ranks is {total}, not {expected}")
    return of_ranks(socket.gethostname())


def _reduce(group: RankGroup, size: int) -> float:
    """Return the median time in seconds of an all-reduce of `size` bytes."""
    if group.backend == "none":
        return 1.0
    buffer = torch.ones(size // 4, dtype=torch.float32, device=group.device)
    times = []
    for number in range(WARMUP + TIMED):
        distributed.barrier()
        group.synchronise()
        started = time.perf_counter()
        distributed.all_reduce(buffer)
        group.synchronise()
        if number >= WARMUP:
            times.append(time.perf_counter() - started)
        buffer.fill_(1.0)
    return sorted(times)[len(times) // 2]


def sent_bytes() -> dict[str, int]:
    """Return the bytes sent so far, by interface and by InfiniBand adapter."""
    counters = interface_bytes()
    for path in ADAPTERS.glob("*/ports/*/counters/port_xmit_data"):
        adapter = path.parts[len(ADAPTERS.parts)]
        counters[adapter] = counters.get(adapter, 0) + _WORD * _number(path)
    return counters


def busiest(before: Mapping[str, int], after: Mapping[str, int]) -> str:
    """Return the interface that sent most bytes; empty if it sent less than `NOISE`."""
    grown = {name: count - before.get(name, 0) for name, count in after.items()}
    name = max(grown, key=lambda one: grown[one], default="")
    return name if name and grown[name] > NOISE else ""


def _number(path: Path) -> int:
    try:
        return int(path.read_text(encoding="ascii"))
    except (OSError, ValueError):
        return 0


if __name__ == "__main__":
    leave(exit_code_of(main))
