"""Runs -> facts about where and with which software they ran."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timezone
from pathlib import Path

from hpc_train.model.expected_study import INTERVALS
from hpc_train.model.record import Record
from hpc_train.model.report import Fact
from hpc_train.model.run import Run
from hpc_train.model.study import Warmup
from hpc_train.pipeline.log_digests import Digests
from hpc_train.pipeline.report_inputs import ReportInputs
from hpc_train.registry import find_batch_system
from hpc_train.runs.provenance import run_facts
from hpc_train.version import VERSION

# Facts that a reviewer may request (Hoefler and Belli, SC15, rule 9; CloudAI's list): shown as not
# recorded if no run has them.
WANTED = (
    *(
        "jobs",
        "partition",
        "qos",
        "account",
        "nodes",
        "gpu",
        "driver",
        "power cap",
        "cuda",
        "torch",
    ),
    *("nccl", "plugin", "adapters", "mpi", "slurm", "container", "modules", "commit", "model"),
    *("data", "seed", "precision", "layout", "profile", "template", "script"),
)
# Other names of the same fact.
_ALSO = {"gpu": ("gpu_type",), "cuda": ("rocm",), "nccl": ("rccl",), "torch": ("torch_asked",)}
_MOST = 20
NOT_RECORDED = "not recorded"


def provenance(inputs: ReportInputs, digests: Digests | None = None) -> tuple[Fact, ...]:
    """Return the facts about the runs, each value with the number of runs that have it.

    With `digests`, those of the logs are included. Secrets are not recorded.
    """
    by_name: dict[str, Counter[str]] = defaultdict(Counter)
    for of_run, count in _facts_of_runs(inputs):
        for name, value in of_run.items():
            by_name[name][value] += count
    facts = [
        *_times(inputs.own),
        *(Fact(name=name, values=_counted(values)) for name, values in by_name.items()),
        *_analysis(inputs),
        *_sources(inputs, digests),
    ]
    known = {fact.name for fact in facts}
    missing = [n for n in WANTED if not known.intersection((n, *_ALSO.get(n, ())))]
    if missing and by_name:
        facts.append(
            Fact(name=NOT_RECORDED, values=((", ".join(missing), len(inputs.study.runs)),))
        )
    return tuple(facts)


def _facts_of_runs(inputs: ReportInputs) -> Iterator[tuple[Mapping[str, str], int]]:
    """Yield the recorded facts of runs; those that the job printed take precedence.

    The number of runs follows: nothing but its conditions is recorded of a run in a table.
    """
    own = {run.folder.run_id: run for run in inputs.own}
    from hpc_train.tables.run_level_records import run_level_records

    printed = _printed(run_level_records(inputs.records, ("condition", "seed")))
    if not (own or inputs.transports or printed):
        yield from ((_shown(run.conditions), 1) for run in inputs.study.runs)
        return
    for expected in inputs.study.runs:
        name = expected.run_id
        run, transport = own.get(name), inputs.transports.get(name)
        conditions = _shown({**expected.conditions, **printed.get(name, {})})
        yield {**run_facts(run, transport), **conditions}, 1


def _shown(conditions: Mapping[str, str]) -> dict[str, str]:
    """Return the conditions that are facts; each variable is a separate fact."""
    return {name: value for name, value in conditions.items() if name != "variables"}


def _printed(records: Iterable[Record]) -> dict[str, dict[str, str]]:
    """Return the conditions and the seed that each run printed."""
    printed: dict[str, dict[str, str]] = defaultdict(dict)
    for record in records:
        if record.metric == "condition":
            name, _, value = record.variant.partition("=")
            printed[record.run].setdefault(name, value)
        elif record.metric == "seed":
            printed[record.run].setdefault("seed", f"{record.value:g}")
    return printed


def _counted(values: Counter[str]) -> tuple[tuple[str, int], ...]:
    """Return the values, the most frequent first; if there are many, the number of the rest."""
    ranked = sorted(values.items(), key=lambda item: (-item[1], item[0]))
    if len(ranked) <= _MOST:
        return tuple(ranked)
    rest = ranked[_MOST:]
    return (*ranked[:_MOST], (f"{len(rest)} other values", sum(count for _, count in rest)))


def _times(runs: Sequence[Run]) -> Iterator[Fact]:
    statuses = [run.status for run in runs if run.status]
    moments: dict[str, list[float | None]] = {
        "submitted": [_moment(run.submission.submitted) for run in runs if run.submission],
        "started": [status.started for status in statuses],
        "ended": [status.ended for status in statuses],
    }
    jobs = [job for run in runs if (job := _job(run))]
    if jobs:
        yield Fact(name="jobs", values=((_span(sorted(set(jobs), key=_order)), len(jobs)),))
    for name, values in moments.items():
        known = sorted(moment for moment in values if moment is not None)
        if known:
            days = list(dict.fromkeys(_utc(moment) for moment in (known[0], known[-1])))
            yield Fact(name=name, values=((" … ".join(days), len(known)),))


def _job(run: Run) -> str:
    """Return the scheduler's id of a run; a process id has no meaning later."""
    if run.submission is None or find_batch_system(run.submission.executor).this_machine:
        return ""
    return (run.status.job if run.status else "") or run.submission.native_id


def _order(job: str) -> tuple[int, str]:
    number = job.partition("_")[0]
    return (int(number) if number.isdecimal() else 0, job)


def _span(words: Sequence[str]) -> str:
    return words[0] if len(words) == 1 else f"{words[0]} … {words[-1]} ({len(words)} jobs)"


def _moment(text: str) -> float | None:
    try:
        return datetime.fromisoformat(text).timestamp()
    except ValueError:
        return None


def _utc(moment: float) -> str:
    return datetime.fromtimestamp(moment, timezone.utc).strftime("%Y-%m-%d %H:%M:%S UTC")


def _analysis(inputs: ReportInputs) -> Iterator[Fact]:
    from hpc_train.tables.run_level_records import has_step_times

    study, count = inputs.study, len(inputs.study.runs)
    if has_step_times(inputs.records):
        yield Fact(name="warm-up excluded", values=((_warmup(study.warmup), count),))
        yield Fact(name="value of a run", values=(("median step time of the slowest rank", count),))
    yield Fact(name="interval", values=((f"95 %, {INTERVALS[study.interval]}, over runs", count),))
    yield Fact(name="analysed by", values=((f"hpctrain {VERSION}", count),))
    if study.allow_mixed:
        yield Fact(name="allowed to differ", values=((", ".join(study.allow_mixed), count),))


def _warmup(warmup: Warmup) -> str:
    seconds = f", and {warmup.seconds:g} s" if warmup.seconds else ""
    return f"{warmup.steps} steps{seconds}"


def _sources(inputs: ReportInputs, digests: Digests | None) -> Iterator[Fact]:
    from hpc_train.tables.run_level_records import parsers_of

    parsers = parsers_of(inputs.records)
    if parsers:
        ranked = [f"{name} {count}" for name, count in _counted(parsers)]
        yield Fact(name="records by parser", values=((", ".join(ranked), len(inputs.study.runs)),))
    if digests is None:
        return
    logs = [line for run in inputs.own if (line := digests.of_run(run))]
    logs += digests.of_files(_named(inputs.files))
    if logs:
        count = len(inputs.study.runs) if len(logs) == 1 else 1
        yield Fact(name="logs", values=tuple((line, count) for line in logs))


def _named(files: Sequence[Path]) -> Sequence[tuple[str, Path]]:
    names = Counter(path.name for path in files)
    return [(path.name if names[path.name] == 1 else path.as_posix(), path) for path in files]
