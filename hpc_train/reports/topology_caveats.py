"""Topologies of nodes -> the caveat that some differ, and what differs between two sides."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

import msgspec

from hpc_train.model.node_topology import NodeTopology
from hpc_train.model.report import Report
from hpc_train.model.topology_traits import topology_traits
from hpc_train.reports.caveats import CAVEATS, NAMED
from hpc_train.reports.point_and_series_names import counted

Topologies = Mapping[str, Sequence[NodeTopology]]
# Host and run of each node that has a value.
Holders = list[tuple[str, str]]


def with_topology_caveats(report: Report, topologies: Topologies) -> Report:
    """Put a caveat before the summary for the nodes whose topology is not that of most."""
    lines = [_sentence(name, values) for name, values in _differing(topologies)]
    if not lines:
        return report
    text = f"{CAVEATS}the runs had nodes of different topology: {'. '.join(lines)}."
    return msgspec.structs.replace(report, summary=(text, *report.summary))


def topology_differences(a: Topologies, b: Topologies) -> tuple[tuple[str, str, str], ...]:
    """Return name, values in A, values in B, of each trait of which the sides have other values."""
    first, second = _values(a), _values(b)
    return tuple(
        (f"topology: {name}", " / ".join(sorted(first[name])), " / ".join(sorted(second[name])))
        for name in first
        if name in second and first[name].keys() != second[name].keys()
    )


def _differing(topologies: Topologies) -> Iterator[tuple[str, Mapping[str, Holders]]]:
    for name, values in _values(topologies).items():
        if len(values) > 1:
            yield name, values


def _values(topologies: Topologies) -> Mapping[str, Mapping[str, Holders]]:
    """Return the nodes that have each value of each trait."""
    found: dict[str, dict[str, Holders]] = defaultdict(lambda: defaultdict(list))
    for run, nodes in topologies.items():
        for node in nodes:
            for name, text in topology_traits(node).items():
                found[name][text].append((node.host, run))
    return found


def _sentence(name: str, values: Mapping[str, Holders]) -> str:
    """Return the usual value with its number of nodes, and who has another one."""
    (usual, holders), *others = sorted(values.items(), key=lambda item: -len(item[1]))
    nodes = len({host for host, _ in holders})
    parts = [f"{name}: {usual} on {counted(nodes, 'node')}"]
    parts += [f"{text} on {_named(h for h, _ in own)} ({_named(r for _, r in own)})"
              for text, own in others[:NAMED]]  # fmt: skip
    return ", ".join(parts)


def _named(names: Iterator[str]) -> str:
    each = list(dict.fromkeys(names))
    more = f" and {len(each) - NAMED} more" if len(each) > NAMED else ""
    return ", ".join(each[:NAMED]) + more
