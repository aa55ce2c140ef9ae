"""Hardware -> which GPU is nearest to each local rank's cores."""

from __future__ import annotations

from hpc_train.model.hardware import Hardware, Near


def gpu_order(hardware: Hardware) -> tuple[int, ...]:
    """Return the GPUs in the order of their cores; empty if that is 0, 1, 2, … or is not known.

    Local rank 0 has the first cores, the next rank those after them, and so on.
    """
    places = {one.gpu: _core(one, hardware) for one in hardware.near}
    known = {gpu: core for gpu, core in places.items() if core is not None}
    if not known or sorted(known) != list(range(len(hardware.gpus))):
        return ()
    order = tuple(sorted(known, key=lambda gpu: (known[gpu], gpu)))
    return () if order == tuple(sorted(order)) else order


def nearest_nics(near: Near) -> tuple[str, ...]:
    """Return the nearest NICs."""
    levels = ("X", "PIX", "PXB", "PHB", "NODE", "SYS")
    known = [(levels.index(level), name) for name, level in near.nics if level in levels]
    best = min((rank for rank, _ in known), default=None)
    return tuple(name for rank, name in known if rank == best)


def _core(near: Near, hardware: Hardware) -> int | None:
    if near.first_cpu is not None:
        return near.first_cpu
    nodes = dict(hardware.processor.numa) if hardware.processor else {}
    return nodes.get(near.numa) if near.numa is not None else None
