"""Runs of a report -> the rows of the table of all runs, with links."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from hpc_train.model.report import Report
from hpc_train.reports.formats.page.grids import text_of
from hpc_train.reports.formats.page.lookup import OK, Lookup
from hpc_train.reports.numbers import ABSENT, significant, whole
from hpc_train.reports.words import series_heading, short_series

# Heading and format; a column without any value is left out, and a constant column is written once
# above the table.
COLUMNS: dict[str, tuple[str, Callable[[Any], str]]] = {
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
LONG = frozenset({"problem", "flags"})
LINKS = (("end", "e"), ("settings", "c"), ("script", "s"))
# Length of a cell; the full text is shown with the end of the run.
LONGEST = 120


class RunRow(NamedTuple):
    """One run: its cells, and (text, number of the target in the page) for each link."""

    cells: Sequence[str]
    links: Sequence[tuple[str, str]]

    @property
    def ok(self) -> bool:
        """Whether the run has a result."""
        return self.cells[1] == OK


class RunTable(NamedTuple):
    """All runs; `number` maps a run to its row, `same` has the values that all share."""

    heads: Sequence[str]
    right: Sequence[int]
    wrapped: Sequence[int]
    rows: Sequence[RunRow]
    same: str
    number: dict[str, int]


def run_table(report: Report, found: Lookup) -> RunTable:
    """Return the rows of all runs in the order of the study."""
    runs = report.run_rows
    names = [str(run["run_id"]) for run in runs]
    axis = series_heading(runs)
    columns = {key: [_text(run, key, axis) for run in runs] for key in COLUMNS}
    known = {k: texts for k, texts in columns.items() if not {*texts} <= {ABSENT}}
    keys = [k for k, t in known.items() if k == "state" or len({*t}) > 1]
    same = [f"{COLUMNS[k][0]} {t[0]}" for k, t in known.items() if k not in keys]
    return RunTable(
        heads=["run", "more", *(axis if axis and k == "series" else COLUMNS[k][0] for k in keys)],
        # The links are the second column.
        right=[i for i, key in enumerate(keys, start=3) if key not in WORDS],
        wrapped=[i for i, key in enumerate(keys, start=3) if key in LONG],
        rows=[
            RunRow((name, *cells), _links(name, found))
            for name, *cells in zip(names, *(known[key] for key in keys), strict=True)
        ],
        same=", ".join(same),
        number={name: i for i, name in enumerate(names, start=1)},
    )


def _text(run: dict[str, Any], key: str, axis: str) -> str:
    text = COLUMNS[key][1](run.get(key))
    text = short_series(text, axis) if key == "series" else text
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}…"


def _links(name: str, found: Lookup) -> list[tuple[str, str]]:
    numbers = (found.end_of, found.variant_of, found.script_of)
    return [
        (word, f"{letter}{of[name]}")
        for (word, letter), of in zip(LINKS, numbers, strict=True)
        if name in of
    ]
