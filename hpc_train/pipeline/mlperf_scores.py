"""Foreign logs -> notes with the scores of MLPerf results."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from pathlib import Path

from hpc_train.errors import LogParseError
from hpc_train.records.mlperf_run import MlperfRun, mlperf_run, scaling_factor
from hpc_train.tables.time_to_accuracy_formulas import LEAST_RUNS, score

# Names of the logs of one result in the rules of MLPerf.
_RESULTS = "result_*.txt"


def mlperf_notes(logs: Iterable[Path]) -> Iterator[str]:
    """Yield the score of each folder of results whose runs are all among the logs.

    A part of a result has no score, because its best and worst runs are unknown.
    """
    chosen = set(logs)
    for folder in sorted({path.parent for path in chosen if path.match(_RESULTS)}):
        files = sorted(folder.glob(_RESULTS))
        if len(files) >= LEAST_RUNS and chosen.issuperset(files):
            yield from _note(folder, files)


def _note(folder: Path, files: list[Path]) -> Iterator[str]:
    try:
        runs, factor = [mlperf_run(path) for path in files], scaling_factor(folder)
    except LogParseError as error:
        yield f"{folder}: no MLPerf score: {error}"
        return
    times = [run.time_to_train_s if run.status == "success" else None for run in runs]
    # Other programs may use the same file names.
    if any(run.benchmark for run in runs):
        yield f"{_result(runs[0])} ({folder}): MLPerf score {_minutes(times, factor)}"


def _result(run: MlperfRun) -> str:
    return f"{run.benchmark} on {run.platform}" if run.platform else run.benchmark


def _minutes(times: list[float | None], factor: float) -> str:
    seconds, failed = score(times, factor), times.count(None)
    scaled = f", times the factor {factor:g} of scaling.json" if factor != 1 else ""
    lost = f", {failed} of them without success" if failed else ""
    if not math.isfinite(seconds):
        return f"none: {failed} of {len(times)} runs without success"
    mean = f"by the rules' mean of {len(times)} runs{lost}{scaled}"
    return f"{seconds / 60:.3f} minutes to train, {mean}"
