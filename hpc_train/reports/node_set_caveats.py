"""NodeSets -> the caveats of a study whose ratios depend on the nodes of its runs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

import msgspec

from hpc_train.model.report import Report
from hpc_train.reports.caveats import NAMED
from hpc_train.reports.plain_rows import Row, plain_rows
from hpc_train.reports.point_and_series_names import counted, names

if TYPE_CHECKING:
    import pandas as pd

    from hpc_train.tables.node_sets import ApartPoints, NodeSets
    from hpc_train.tables.slow_nodes import SlowNode

_ALIKE = (
    "share no node, and their repetitions are on the same nodes, so that a difference between "
    "nodes looks like one between {}"
)


def with_node_caveats(report: Report, found: NodeSets, points: pd.DataFrame) -> Report:
    """Put the caveats of the nodes before the summary of a report; `points` are its points."""
    if found == type(found)():
        return report
    caveats = _caveats(found, plain_rows(points))
    return msgspec.structs.replace(report, summary=(*caveats, *report.summary))


def with_slow_nodes(report: Report, slow: Sequence[SlowNode]) -> Report:
    """Put a caveat that names the slow nodes before the summary of a report."""
    if not slow:
        return report
    shown = (
        f"{one.node} {one.times:.2g} times ({counted(one.runs, 'run')})" for one in slow[:NAMED]
    )
    text = "Caveats: a node is slower than the others of its runs, which wait for it: "
    line = f"{text}{_and_more(shown, len(slow))}."
    return msgspec.structs.replace(report, summary=(line, *report.summary))


def sides_apart(
    apart: Sequence[ApartPoints], name: Callable[[Row], str], points: Sequence[Row]
) -> Iterator[str]:
    """Yield the caveat of a comparison whose points share no node; `points` are its rows."""
    if apart:
        shown = (
            f"{name(points[one.point])}: A on {_few(one.nodes)}, B on {_few(one.others)}"
            for one in apart[:NAMED]
        )
        yield f"Caveats: A and B {_ALIKE.format('A and B')}: {_and_more(shown, len(apart))}."


def _caveats(found: NodeSets, points: Sequence[Row]) -> Iterator[str]:
    name = names(points)
    if found.apart:
        shown = (
            f"{name(points[one.point])} on {_few(one.nodes)}, {name(points[one.other])} on "
            f"{_few(one.others)}"
            for one in found.apart[:NAMED]
        )
        said = _ALIKE.format("the points")
        yield f"Caveats: points that are compared {said}: {_and_more(shown, len(found.apart))}."
    if found.slow is not None:
        nodes, factor, runs = found.slow
        yield (
            f"Caveats: runs on {_few(nodes)} are {100 * (1 - factor):.2g} % slower than the other "
            f"runs of their points ({counted(runs, 'run')}, p < 0.025 over all nodes)."
        )


def _and_more(shown: Iterable[str], count: int) -> str:
    more = f"; and {count - NAMED} more" if count > NAMED else ""
    return f"{'; '.join(shown)}{more}"


def _few(nodes: Sequence[str]) -> str:
    more = f" and {len(nodes) - NAMED} more" if len(nodes) > NAMED else ""
    return ", ".join(nodes[:NAMED]) + more
