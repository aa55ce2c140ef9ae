"""Runs -> groups that differ only in the repetition, which a job array can run."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence

from hpc_train.model.run import RunFolder, RunName


def repetition_groups(
    runs: Sequence[RunFolder], fits: Callable[[RunName], bool]
) -> list[tuple[list[RunFolder], str]]:
    """Group the repetitions of a point, in the order of the runs; each with its script.

    Runs share a group only if their scripts are byte-identical and `fits` is true of their names;
    any other run is alone.
    """
    groups: dict[tuple[str, str, str], list[RunFolder]] = defaultdict(list)
    for run in runs:
        name = RunName.parse(run.run_id)
        key = (name.stem, name.ending) if name and fits(name) else (run.run_id, "")
        groups[key[0], key[1], run.script.read_text(encoding="utf-8")].append(run)
    return [(group, text) for (_, _, text), group in groups.items()]
