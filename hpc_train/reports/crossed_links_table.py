"""Sizes of advice on a machine -> the links that a collective over all their GPUs crosses."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from hpc_train.model.machine_size import MachineSize
from hpc_train.model.report import Cell, Column, ReportTable
from hpc_train.reports.value_format import significant

_IN_NODE = "from GPU to GPU in a node"
_BETWEEN = "the adapters between nodes"
_LEAF, _BLOCK = "leaf switch", "block"
_UNKNOWN = {
    _IN_NODE: "not known: no link of GPUs has a source",
    _BETWEEN: "not known: state nics_per_node and nic_gbps of the partition",
}


def crossed_links_tables(ranks: Sequence[int], machine: MachineSize) -> Iterator[ReportTable]:
    """Yield the table: the slowest kind of link of each size, and its share of a GPU [GB/s]."""
    sizes = sorted({size for size in ranks if size > 1})
    if not sizes or not machine.gpus_per_node:
        return
    rows = [
        (_span(list(group)), crossed, *_rate(crossed, machine))
        for crossed, group in groupby(sizes, lambda size: _crossed(size, machine))
    ]
    yield ReportTable(
        title="Links that a collective over all GPUs crosses",
        columns=(
            Column(key="ranks", heading="ranks"),
            Column(key="crosses", heading="crosses", align="left", prose=True),
            Column(key="rate", heading="GB/s for\na GPU"),
            Column(key="of", heading="of", align="left", prose=True),
        ),
        rows=tuple(tuple(Cell(text=text) for text in row) for row in rows),
        key="links",
        records=tuple(
            {"ranks": size, "crosses": _crossed(size, machine), "gb_per_s": _value(size, machine)}
            for size in sizes
        ),
    )


def switch_notes(ranks: Sequence[int], machine: MachineSize) -> Iterator[str]:
    """Yield the option that keeps the nodes of a job together, for the sizes of several nodes."""
    group, word = _group(machine)
    sizes = sorted({machine.nodes(size) for size in ranks} - {1})
    if not group or not sizes:
        return
    few, many = [size for size in sizes if size <= group], [size for size in sizes if size > group]
    if word == _BLOCK:
        parts = [(size, max(n for n in range(1, group + 1) if size % n == 0)) for size in sizes]
        segments = ", ".join(f"{{segment: {part}}} of {size} nodes" for size, part in parts)
        yield f"A {word} has {group} nodes. directives keep groups of nodes in one: {segments}."
        return
    if few:
        yield (
            f"A {word} has {group} nodes: directives: {{switches: 1@10:00}} waits up to ten "
            f"minutes for one, on up to {few[-1]} nodes; without it Slurm may use several."
        )
    if many:
        least = ", ".join(f"{-(-size // group)} for {size} nodes" for size in many)
        yield f"Leaf switches of {group} nodes that a job needs at least: {least}."


def _group(machine: MachineSize) -> tuple[int, str]:
    """Return the nodes of a leaf switch or block, 0 if not known, and what it is."""
    if machine.nodes_per_block:
        return machine.nodes_per_block, _BLOCK
    return machine.nodes_per_switch or 0, _LEAF


def _crossed(ranks: int, machine: MachineSize) -> str:
    nodes, (group, word) = machine.nodes(ranks), _group(machine)
    if nodes == 1:
        return _IN_NODE
    if not group:
        return _BETWEEN
    return f"{_BETWEEN}, {'within one' if nodes <= group else 'and more than one'} {word}"


def _value(ranks: int, machine: MachineSize) -> float | None:
    if machine.nodes(ranks) == 1:
        return machine.gpu_link or None
    return machine.node_link / machine.gpus_per_node if machine.node_link else None


def _rate(crossed: str, machine: MachineSize) -> tuple[str, str]:
    """Return the bandwidth of one GPU in one direction, and what has it."""
    rate = _value(1 if crossed == _IN_NODE else machine.gpus_per_node + 1, machine)
    if rate is None:
        return "", _UNKNOWN[_IN_NODE if crossed == _IN_NODE else _BETWEEN]
    if crossed == _IN_NODE:
        return significant(rate, 3), f"each {machine.gpu or 'GPU'}"
    whole = significant(machine.node_link or 0.0, 3)
    return significant(rate, 3), f"{whole} of a node, for {machine.gpus_per_node} GPUs"


def _span(sizes: Sequence[int]) -> str:
    return str(sizes[0]) if len(sizes) == 1 else f"{sizes[0]} to {sizes[-1]}"
