"""Switches of the nodes of runs -> caveats of points whose runs are spread differently."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

import msgspec

from hpc_train.model.expected_study import ExpectedRun, ExpectedStudy
from hpc_train.model.report import Report
from hpc_train.model.switch_topology import RunSwitches, SwitchKind
from hpc_train.reports.caveats import NAMED
from hpc_train.reports.point_and_series_names import counted

_WORDS = {"tree": ("leaf switch", "leaf switches"), "block": ("block", "blocks")}
Place = tuple[SwitchKind, int, int | None]


def with_switch_caveats(
    report: Report, study: ExpectedStudy, switches: Mapping[str, RunSwitches]
) -> Report:
    """Put a caveat before the summary for the points whose runs have unequal ways to go."""
    if not switches:
        return report
    lines = [_sentence(runs, switches) for runs in _points(study, switches)]
    if not lines:
        return report
    more = f"; and {len(lines) - NAMED} more points" if len(lines) > NAMED else ""
    text = (
        "Caveats: runs of one point have nodes on different numbers of switches, so that their "
        f"messages take ways of different length: {'; '.join(lines[:NAMED])}{more}."
    )
    return msgspec.structs.replace(report, summary=(text, *report.summary))


def _points(
    study: ExpectedStudy, switches: Mapping[str, RunSwitches]
) -> Iterator[Sequence[ExpectedRun]]:
    """Yield the runs of each point in which they differ."""
    points: dict[str, list[ExpectedRun]] = defaultdict(list)
    for run in study.runs:
        if run.run_id in switches:
            points[f"{sorted(run.axes.items())} {run.topology}"].append(run)
    for runs in points.values():
        if len({_place(switches[run.run_id]) for run in runs}) > 1:
            yield runs


def _sentence(runs: Sequence[ExpectedRun], switches: Mapping[str, RunSwitches]) -> str:
    by_place: dict[Place, list[str]] = defaultdict(list)
    for run in runs:
        by_place[_place(switches[run.run_id])].append(run.run_id)
    return ", ".join(_of_place(place, names) for place, names in by_place.items())


def switch_words(switches: RunSwitches) -> str:
    """Return `2 leaf switches (3 hops)`."""
    kind, leaves, hops = _place(switches)
    way = f" ({counted(hops, 'hop')})" if hops else ""
    return f"{leaves} {_WORDS[kind][leaves != 1]}{way}"


def _of_place(place: Place, names: Sequence[str]) -> str:
    kind, leaves, hops = place
    shown = ", ".join(names[:NAMED]) + (f" and {len(names) - NAMED} more" * (len(names) > NAMED))
    return f"{shown} on {switch_words(RunSwitches(job='', kind=kind, leaves=leaves, hops=hops))}"


def _place(switches: RunSwitches) -> Place:
    return switches.kind, switches.leaves, switches.hops
