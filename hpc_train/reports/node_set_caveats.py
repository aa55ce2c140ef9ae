"""NodeSets -> the caveats of a study whose ratios depend on the nodes of its runs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import msgspec

from hpc_train.model.report import Report
from hpc_train.reports.caveats import NAMED
from hpc_train.reports.plain_rows import Row, plain_rows
from hpc_train.reports.point_and_series_names import counted, names

if TYPE_CHECKING:
    import pandas as pd

    from hpc_train.tables.node_sets import NodeSets


def with_node_caveats(report: Report, found: NodeSets, points: pd.DataFrame) -> Report:
    """Put the caveats of the nodes before the summary of a report; `points` are its points."""
    if found == type(found)():
        return report
    caveats = _caveats(found, plain_rows(points))
    return msgspec.structs.replace(report, summary=(*caveats, *report.summary))


def _caveats(found: NodeSets, points: Sequence[Row]) -> Iterator[str]:
    name = names(points)
    if found.apart:
        shown = [
            f"{name(points[one.point])} on {_few(one.nodes)}, {name(points[one.other])} on "
            f"{_few(one.others)}"
            for one in found.apart[:NAMED]
        ]
        more = len(found.apart) - NAMED
        yield (
            "Caveats: points that are compared share no node, and all runs of one of them are on "
            "the same nodes, so that a difference between nodes looks like one between the points: "
            f"{'; '.join(shown)}{f' and {more} more' if more > 0 else ''}."
        )
    if found.slow is not None:
        nodes, factor, runs = found.slow
        yield (
            f"Caveats: runs on {_few(nodes)} are {100 * (1 - factor):.2g} % slower than the other "
            f"runs of their points ({counted(runs, 'run')}, p < 0.025 over all nodes)."
        )


def _few(nodes: Sequence[str]) -> str:
    more = f" and {len(nodes) - NAMED} more" if len(nodes) > NAMED else ""
    return ", ".join(nodes[:NAMED]) + more
