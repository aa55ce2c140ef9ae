"""A folder `mlruns` of MLflow -> a table of its runs.

A run is a folder with `meta.yaml`, `params/NAME` (a text) and `metrics/NAME`, which has a line
`TIMESTAMP VALUE STEP` for each logged value. Names with `/` are in folders of their own.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterator
from itertools import islice
from math import isfinite
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from hpc_train.errors import LogParseError
from hpc_train.imports.csv_table import ResultTable, table_of
from hpc_train.model.result_columns import SIZES, plain_name
from hpc_train.regularfile import is_folder, is_regular, read_regular
from hpc_train.yamlfile import read

_META = "meta.yaml"
_STATES = {1: "RUNNING", 2: "SCHEDULED", 3: "FINISHED", 4: "FAILED", 5: "KILLED"}
# Measurements of a step; of any other metric the last value counts, and of memory the largest.
_OF_STEPS = frozenset({
    "step_time", "epoch_time", "samples_per_second", "tokens_per_second", "tflops", "mfu", "power",
    "samples_per_second_per_gpu", "tokens_per_second_per_gpu", "tflops_per_gpu", "power_per_gpu",
})  # fmt: skip
_WHOLE = re.compile(r"[0-9]{1,10}(?:\.0)?")
_NONE = ("", "None")
_LARGEST = 64 << 20
# A folder of many logs is not searched to its end for runs.
_SEARCHED = 1000


class _Run(NamedTuple):
    name: str
    run_id: str
    cells: dict[str, str]
    omitted: tuple[str, ...]


def is_mlruns(path: Path) -> bool:
    """Whether a folder is one of MLflow: of all experiments, of one, or of a run."""
    if is_regular(path / _META):
        return _is_run(path) or any(_runs_below(path))
    return any(_runs_below(one) for one in islice(_folders(path), _SEARCHED))


def read_mlruns(path: Path) -> ResultTable:
    """Read the runs of a folder as a table: settings as `params.NAME`, values as `metrics.NAME`.

    Times and rates are medians over the steps without the first value; others are the last value.

    Raises:
        LogParseError: a file cannot be read, or a line of a metric is not one of MLflow.
    """
    found = [_read(folder) for folder in _all_runs(path)]
    runs = [run for run in found if run is not None]
    if not runs:
        raise LogParseError(f"{path}: no run in it that was not deleted", "name the folder mlruns")
    counts = Counter(run.name for run in runs)
    columns = {name: None for run in runs for name in run.cells}
    rows = [
        (number, (_unique(run, counts), *(run.cells.get(column, "") for column in columns)))
        for number, run in enumerate(runs, start=1)
    ]
    named = path if path.name else path.resolve()
    table = table_of(named, 1, ("run", *columns), rows)
    return table._replace(notes=tuple(_notes(path, found)))


def _unique(run: _Run, counts: Counter[str]) -> str:
    return run.name if counts[run.name] == 1 else f"{run.name} {run.run_id[:8]}"


def _notes(path: Path, found: list[_Run | None]) -> Iterator[str]:
    yield (
        f"{path}: of times and rates that were logged several times, the median without the first "
        "value; of memory the largest, of other metrics the last value."
    )
    deleted = found.count(None)
    if deleted:
        yield f"{path}: {deleted} deleted runs are not read."
    omitted = [place for run in found if run for place in run.omitted]
    if omitted:
        yield f"{path}: values that are not finite are not used: {', '.join(omitted[:6])}."


def _all_runs(path: Path) -> list[Path]:
    if _is_run(path):
        return [path]
    return [run for one in (path, *_folders(path)) for run in _runs_below(one)]


def _runs_below(path: Path) -> list[Path]:
    """Return the folders of the runs of an experiment, which has a `meta.yaml` as well."""
    if not is_regular(path / _META):
        return []
    # A run that failed early has no metrics.
    return [run for run in _folders(path) if is_regular(run / _META)]


def _is_run(path: Path) -> bool:
    return is_folder(path / "metrics") or is_folder(path / "params")


def _folders(path: Path) -> list[Path]:
    try:
        with os.scandir(path) as entries:
            names = [entry.name for entry in entries if not entry.name.startswith(".")]
    except OSError:
        return []
    return [path / name for name in sorted(names) if is_folder(path / name)]


def _read(folder: Path) -> _Run | None:
    """Return a run; None if it was deleted."""
    meta = read(folder / _META, LogParseError).data
    if not isinstance(meta, dict) or meta.get("lifecycle_stage") == "deleted":
        return None
    run_id = str(meta.get("run_id") or folder.name)
    cells = {"state": _state(meta.get("status")), "wall_s": _wall(meta)}
    for name, path in _files(folder / "params"):
        cells[f"params.{name}"] = _setting(name, path)
    omitted = []
    for name, path in _files(folder / "metrics"):
        values = _values(path)
        finite = [value for value in values if isfinite(value)]
        if len(finite) < len(values):
            omitted.append(str(path))
        # A loss that ends as NaN has no last value.
        if finite and (isfinite(values[-1]) or plain_name(name) in _OF_STEPS):
            cells[f"metrics.{name}"] = repr(_reduced(plain_name(name), finite))
    return _Run(str(meta.get("run_name") or run_id), run_id, cells, tuple(omitted))


def _setting(name: str, path: Path) -> str:
    """Return a setting on one line; that of a size must be a whole number."""
    text = " ".join(_text(path).split())
    if plain_name(name) in SIZES and text not in _NONE and not _WHOLE.fullmatch(text):
        raise LogParseError(
            f"{path}: {name}: {text[:40]!r} is not a whole number", "correct this file"
        )
    return text


def _state(status: object) -> str:
    return _STATES.get(status, "") if isinstance(status, int) else str(status or "")


def _wall(meta: dict[str, Any]) -> str:
    start, end = meta.get("start_time"), meta.get("end_time")
    if isinstance(start, int) and isinstance(end, int) and 0 < start < end:
        return str((end - start) / 1000)
    return ""


def _files(folder: Path) -> Iterator[tuple[str, Path]]:
    for parent, folders, names in os.walk(folder):
        folders.sort()
        for name in sorted(names):
            path = Path(parent) / name
            yield path.relative_to(folder).as_posix(), path


def _text(path: Path) -> str:
    try:
        return read_regular(path, _LARGEST).decode("utf-8", "replace")
    except OSError as failure:
        raise LogParseError(f"{path}: cannot be read: {failure.strerror or failure}") from None


def _values(path: Path) -> list[float]:
    """Return the values of a metric in the order of their steps."""
    found = []
    # A last line without an end is being written.
    for number, line in enumerate(_text(path).split("\n")[:-1], start=1):
        try:
            stamp, value, step = (line + " 0").split()[:3]
            found.append((int(step), int(stamp), float(value)))
        except ValueError:
            raise LogParseError(
                f"{path}:{number}: {line[:40]!r} is not a line `TIMESTAMP VALUE STEP` of MLflow"
            ) from None
    return [value for _, _, value in sorted(found, key=lambda one: one[:2])]


def _reduced(name: str, values: list[float]) -> float:
    if name in _OF_STEPS:
        return median(values[1:] or values)
    return max(values) if name == "memory" else values[-1]
