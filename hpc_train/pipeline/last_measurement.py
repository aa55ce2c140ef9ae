"""The growing log of rank 0 -> its last measurement, in one line."""

from __future__ import annotations

import time
from collections.abc import Sequence

from hpc_train.errors import HpcTrainError
from hpc_train.model.run import Run
from hpc_train.records.collect import wanted
from hpc_train.records.guessed_records import GUESSING
from hpc_train.records.read_log import Log, Reading, extend
from hpc_train.regularfile import is_regular
from hpc_train.runs.run_folders import read_study

# In this order; the first one of each group that was printed is shown.
_GROUPS = (("step_time",), ("samples_per_second", "tokens_per_second"), ("loss",), ("accuracy",))
_WORDS = {
    "step_time": "s a step",
    "samples_per_second": "samples/s",
    "tokens_per_second": "tokens/s",
}


class LastMeasurement:
    """Reads the new lines of one run at each call; the logs are never read twice.

    A value of a format whose lines depend on earlier ones may be missed: it is only shown.
    """

    def __init__(self, run: Run) -> None:
        self._folder = run.folder
        self._wanted = wanted("auto")
        try:
            study = read_study(run.folder.path.parent)
        except HpcTrainError:
            study = None
        if study is not None:
            self._wanted = self._wanted.with_patterns(study.spec.patterns)
        self._start_anew()

    def _start_anew(self) -> None:
        self._readings: dict[str, Reading] = {}
        self._values: dict[str, float] = {}
        self._step: int | None = None

    def text(self) -> str:
        """Return `step 120, 0.25 s a step, 320 samples/s, loss 1.3`; empty before the first one."""
        self._read()
        if not self._values and any(one.offset for one in self._readings.values()):
            # Lines of no known format.
            self._wanted = wanted(GUESSING)
            self._readings.clear()
            self._read()
        parts = [] if self._step is None else [f"step {self._step:,}"]
        for group in _GROUPS:
            name = next((name for name in group if name in self._values), None)
            if name is not None:
                parts.append(_worded(name, self._values[name]))
        return ", ".join(parts)

    def _read(self) -> None:
        for name in ("rank-0.out", "node-0.out", "job.out"):
            path = self._folder.logs / name
            if not is_regular(path) or not path.stat().st_size:
                continue
            reading = self._readings.setdefault(name, Reading())
            for pack in extend(Log(self._folder.run_id, path, name), self._wanted, reading):
                for record in pack.records():
                    self._values[record.metric] = record.value
                    self._step = record.step if record.step is not None else self._step
            reading.packs.clear()
            return


def _worded(name: str, value: float) -> str:
    if name in _WORDS:
        return f"{value:.4g} {_WORDS[name]}"
    return f"{name} {value:.4g}"


def time_left(run: Run) -> str:
    """Return `41 min to the time limit` of a running job; empty without a limit."""
    plan = run.manifest.plan if run.manifest is not None else None
    if plan is None or plan.time_s is None or run.status is None:
        return ""
    left_s = max(0.0, plan.time_s - (time.time() - run.status.started))
    minutes = round(left_s / 60)
    return (
        f"{minutes // 60} h {minutes % 60} min to the time limit"
        if minutes >= 60
        else (f"{minutes} min to the time limit")
    )


class Progress:
    """The line of the first run that is running, read at limited intervals."""

    def __init__(self, every_s: float) -> None:
        self._every_s = every_s
        self._read_at = 0.0
        self._known: dict[str, LastMeasurement] = {}
        self._line = ""

    def line(self, runs: Sequence[Run]) -> str:
        """Return `RUN  step 120, …`; empty if nothing is known yet, or between two readings."""
        now = time.monotonic()
        if not runs or now - self._read_at < self._every_s:
            return ""
        self._read_at = now
        run = runs[0]
        last = self._known.setdefault(run.folder.run_id, LastMeasurement(run))
        measured = last.text()
        line = ", ".join(filter(None, (measured, time_left(run)))) if measured else ""
        if line == self._line:
            return ""
        self._line = line
        return f"{run.folder.run_id}  {line}" if line else ""
