"""Runs of a report -> the rows of the table of all runs, each with the links of its own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from hpc_train.model.report import Report
from hpc_train.reports.formats.page.grids import text_of
from hpc_train.reports.formats.page.lookup import Lookup
from hpc_train.reports.numbers import significant, whole

# Heading and how it is shown; a column without any value is left out.
COLUMNS = {
    "state": ("state", text_of),
    "series": ("series", text_of),
    "nodes": ("nodes", text_of),
    "ranks": ("ranks", text_of),
    "repetition": ("rep.", text_of),
    "global_batch": ("batch", whole),
    "step_time_s": ("step [s]", significant),
    "samples_per_second": ("samples/s", significant),
    "tokens_per_second": ("tokens/s", significant),
    "epoch_time_s": ("epoch [s]", significant),
    "time_to_train_s": ("train [s]", significant),
    "accuracy": ("accuracy", significant),
    "mfu": ("MFU", significant),
    "wall_s": ("wall [s]", whole),
    "restarts": ("restarts", text_of),
    "transport": ("transport", text_of),
    "problem": ("problem", text_of),
    "flags": ("flags", text_of),
}
WORDS = frozenset({"state", "series", "transport", "problem", "flags"})
LINKS = (("end", "e"), ("settings", "c"), ("script", "s"))
LONGEST = 200


class RunRow(NamedTuple):
    """One run: its cells, and (word, number of its place in the page) for each link."""

    cells: Sequence[str]
    links: Sequence[tuple[str, str]]


class RunTable(NamedTuple):
    """All runs; `number` finds the row of a run."""

    heads: Sequence[str]
    right: Sequence[int]
    rows: Sequence[RunRow]
    number: dict[str, int]


def run_table(report: Report, found: Lookup) -> RunTable:
    """Return the rows of all runs in the order in which they were asked for."""
    runs = report.run_rows
    keys = [key for key in COLUMNS if any(run.get(key) not in (None, "", [], 0) for run in runs)]
    names = [str(run["run_id"]) for run in runs]
    return RunTable(
        heads=["run", *(COLUMNS[key][0] for key in keys)],
        right=[i for i, key in enumerate(keys, start=2) if key not in WORDS],
        rows=[
            RunRow([name, *(_text(run, key) for key in keys)], _links(name, found))
            for name, run in zip(names, runs, strict=True)
        ],
        number={name: i for i, name in enumerate(names, start=1)},
    )


def _text(run: dict[str, Any], key: str) -> str:
    text = str(COLUMNS[key][1](run.get(key)))
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}…"


def _links(name: str, found: Lookup) -> list[tuple[str, str]]:
    numbers = (found.end_of, found.variant_of, found.script_of)
    return [
        (word, f"{letter}{of[name]}")
        for (word, letter), of in zip(LINKS, numbers, strict=True)
        if name in of
    ]
