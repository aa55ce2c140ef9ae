"""The growing log of rank 0 -> its last measurement, in one line; or why a run has none."""

import json
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from hpc_train.base.errors import HpcTrainError
from hpc_train.base.files import is_regular
from hpc_train.logs.collect import logs_of, packs_in, wanted
from hpc_train.logs.line import Mark
from hpc_train.logs.pattern_suggestions import Suggestion, suggested_for
from hpc_train.logs.read_log import GUESSING, Log, ParseStats, parsers_of, read
from hpc_train.logs.record import RESULTS
from hpc_train.reports.collect import deleted_logs
from hpc_train.runs.run import JobState, Run
from hpc_train.runs.run_folders import read_study

# In this order; the first one of each group that was printed is shown.
_GROUPS = (("step_time",), ("samples_per_second", "tokens_per_second"), ("loss",), ("accuracy",))
_WORDS = {
    "step_time": "s a step",
    "samples_per_second": "samples/s",
    "tokens_per_second": "tokens/s",
}
# Of so many runs at most the log is read.
_SHOWN_RUNS = 20
# Logs of a run that show whether anything is measured; there may be one for each of many ranks.
_FEW = 8


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
        self._marks: dict[str, Mark] = {}
        self._values: dict[str, float] = {}
        self._step: int | None = None

    def text(self) -> str:
        """Return `step 120, 0.25 s a step, 320 samples/s, loss 1.3`; empty before the first one."""
        self._read()
        if not self._values and any(mark.offset for mark in self._marks.values()):
            # Lines of no known format.
            self._wanted = wanted(GUESSING)
            self._marks.clear()
            self._read()
        parts = [] if self._step is None else [f"step {self._step:,}"]
        for group in _GROUPS:
            name = next((name for name in group if name in self._values), None)
            if name is not None:
                shown = f"{self._values[name]:.4g}"
                parts.append(f"{shown} {_WORDS[name]}" if name in _WORDS else f"{name} {shown}")
        return ", ".join(parts)

    def _read(self) -> None:
        for name in ("rank-0.out", "node-0.out", "job.out"):
            path = self._folder.logs / name
            if not is_regular(path) or not path.stat().st_size:
                continue
            mark, log = self._marks.setdefault(name, Mark()), Log(self._folder.run_id, path, name)
            look, census = self._wanted, ParseStats()
            for pack in read(log, parsers_of(look), census, mark):
                for record in pack.records():
                    self._values[record.metric] = record.value
                    self._step = record.step if record.step is not None else self._step
            return


def time_left(run: Run) -> str:
    """Return `41 min to the time limit` of a running job; empty without a limit."""
    plan = run.manifest.plan if run.manifest is not None else None
    if plan is None or plan.time_s is None or run.status is None:
        return ""
    left_s = max(0.0, plan.time_s - (time.time() - run.status.started))
    minutes = round(left_s / 60)
    text = f"{minutes // 60} h {minutes % 60} min" if minutes >= 60 else f"{minutes} min"
    return f"{text} to the time limit"


class RunProgress:
    """What each running run has measured last, read at limited intervals."""

    def __init__(self, every_s: float) -> None:
        self._every_s = every_s
        self._read_at = -every_s
        self._known: dict[str, LastMeasurement] = {}
        self._texts: dict[str, str] = {}

    def texts(self, runs: Sequence[Run]) -> dict[str, str]:
        """Return `step 120, 0.25 s a step, loss 1.3, 41 min to the time limit` by run."""
        now = time.monotonic()
        running = [run for run in runs if run.state is JobState.RUNNING][:_SHOWN_RUNS]
        if now - self._read_at >= self._every_s:
            self._read_at = now
            self._texts = {run.folder.run_id: self.text(run) for run in running}
        names = {run.folder.run_id for run in running}
        return {name: text for name, text in self._texts.items() if name in names and text}

    def text(self, run: Run) -> str:
        """Return that of one run, read now; empty before its first measurement."""
        last = self._known.setdefault(run.folder.run_id, LastMeasurement(run))
        measured = last.text()
        return ", ".join(filter(None, (measured, time_left(run)))) if measured else ""


# A benchmark of a network measures no training, and `collect` prints what it measures.
_MEASURED = {*RESULTS, "busbw"}


def unmeasured(home: Path, runs: Sequence[Run]) -> tuple[str, ...]:
    """Return what to print of the first run that ended well, if nothing in it can be measured.

    A run of a study is to be measured. A single job may be no training, so that only lines which
    look like a measurement are shown. The first logs of one run are read, up to a measurement.
    """
    run = next((one for one in runs if one.state is JobState.COMPLETED), None)
    if run is None:
        return ()
    logs = logs_of(run.folder.run_id, [run.folder.logs], run.folder.path)[:_FEW]
    if not logs:
        gone = deleted_logs(run)
        return (f"{run.folder.run_id} ended well; {gone}",) if gone else ()
    try:
        manifest = read_study(home)
        options = wanted("auto").with_patterns(manifest.spec.patterns if manifest else ())
        packs = packs_in(logs, options, ParseStats())
        seen = {kind.metric for pack in packs for kind in pack.kinds}
    except HpcTrainError:
        # `report` names the reason.
        return ()
    if seen & _MEASURED:
        return ()
    path, offered = suggested_for(log.path for log in logs) or (None, [])
    offered = [one for one in offered if one.metric not in seen]
    if manifest is None and not any(one.metric in _MEASURED for one in offered):
        return ()
    return tuple(_lines(home, run, path, offered))


def _lines(
    home: Path, run: Run, path: Path | None, suggestions: Sequence[Suggestion]
) -> Iterator[str]:
    name = run.folder.run_id
    yield f"{name} ended well, and none of its lines states a time or a rate that hpctrain reads"
    if path is None:
        yield "  print one in the script: hpctrain help events"
        return
    for one in suggestions:
        yield f"  {path.name}:{one.line}: {one.words}"
    yield f"  finished runs: hpctrain report {home.name} with these options"
    yield f"  the next ones: in a study file, {_keys(suggestions)}"


def _keys(found: Sequence[Suggestion]) -> str:
    """Return the key of a study file; JSON is YAML."""
    keys = []
    for one in found:
        scale = f", scale: {json.dumps(one.pattern.scale)}" if one.pattern.scale else ""
        keys.append(f"{{regex: {json.dumps(one.pattern.regex)}, scope: per_rank{scale}}}")
    return f"pattern: [{', '.join(keys)}]"
