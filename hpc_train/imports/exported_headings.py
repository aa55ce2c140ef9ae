"""Headings of MLflow, Weights & Biases and sacct -> those of a table of results.

MLflow's `search_runs` prefixes metrics, parameters and tags, as tables of both values and settings
of Weights & Biases do. Columns of the latter that begin with `_` describe the last logged step.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from hpc_train.model.result_columns import (
    AMBIGUOUS,
    KNOWN,
    RATES_PER_GPU,
    RESULTS,
    SIZES,
    misspelt,
    plain_name,
)

_PREFIXED = re.compile(r"(metrics|summary|params|config|tags)[./](.+)", re.IGNORECASE)
_OF_RESULTS = ("metrics", "summary")
# The columns that the page of a project of Weights & Biases always exports.
_OF_PROJECT = frozenset({"name", "state", "created", "runtime"})
_WALL = "wall_s"
# A row for each step of one run.
_OF_HISTORY = frozenset({"_step", "step", "epoch"})


def plain_headings(names: Sequence[str]) -> tuple[str, ...]:
    """Return the headings without prefixes, empty for a column that states nothing of a run.

    A metric of a tracker that hpctrain does not know is a result, and no axis.
    """
    plain = [_plain(name.strip()) for name in names]
    if _OF_PROJECT.issubset(word.lower() for word in plain):
        words = {"runtime": _WALL, _WALL: ""}
        plain = [words.get(word.lower(), "" if "/" in word else word) for word in plain]
    return tuple(plain)


def is_prefixed(name: str) -> bool:
    """Whether a tracker named the column: a setting or result of a run, by its prefix."""
    return _PREFIXED.fullmatch(name.strip()) is not None


def is_history(names: Sequence[str]) -> bool:
    """Whether a header is that of a log with a row for each step or epoch, and states no size."""
    bare = {name.strip().lower() for name in names}
    return not _OF_HISTORY.isdisjoint(bare) and not states_a_size(names)


def states_a_size(names: Sequence[str]) -> bool:
    """Whether a column is a size of a job."""
    return any(plain_name(name) in SIZES for name in plain_headings(names))


def names_a_result(names: Sequence[str], *, sized: bool = False) -> bool:
    """Whether a header is that of a table of results: it names a size or a result of a job.

    `sized`: it must name both, as only the first row of a table without a header can tell.
    """
    if is_history(names):
        return False
    known = (*SIZES, *RESULTS)
    plain = list(map(plain_name, plain_headings(names)))
    if sized:
        results = {*RESULTS, *RATES_PER_GPU, *AMBIGUOUS}
        return not results.isdisjoint(plain) and states_a_size(names)
    return any(n in known or n in AMBIGUOUS or misspelt(n, known) for n in plain)


def step_column(names: Sequence[str]) -> str:
    """Return the column that numbers the steps of a log, empty if there is none."""
    return next((name for name in names if name.strip().lower() in ("step", "epoch")), "")


def _plain(name: str) -> str:
    if name.startswith("_"):
        return _WALL if name == "_runtime" else ""
    match = _PREFIXED.fullmatch(name)
    if match is None:
        return name
    kind, rest = match[1].lower(), match[2].strip()
    if kind == "tags":
        return ""
    known = plain_name(rest)
    return rest if kind not in _OF_RESULTS or known in KNOWN or known in AMBIGUOUS else ""
