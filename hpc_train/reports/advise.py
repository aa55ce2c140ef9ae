"""A job or study, a site, and earlier results -> the report that advises strategy and size."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec.structs import replace

from hpc_train.advice.advice import (
    BYTES,
    NUMBER,
    TIME,
    Advice,
    AdviceRow,
    MeasuredStep,
    Question,
    Range,
    Units,
    hours_of,
    quantity_text,
    range_text,
)
from hpc_train.advice.machine import MOST_RANKS, MachineSize, machine_of
from hpc_train.advice.program import (
    ProgramSize,
    completed,
    parse_condition,
    program_identity,
    program_of,
)
from hpc_train.advice.step_time import batch_of, model_flops_utilisation
from hpc_train.advice.verdicts import advise
from hpc_train.base.errors import HpcTrainError, PlanError, SpecError
from hpc_train.base.extras import need
from hpc_train.base.processes import python_command, run
from hpc_train.base.values import Duration, Value
from hpc_train.base.yamlfile import nearest_file
from hpc_train.jobs.log_selection import Search
from hpc_train.jobs.operations import FLOPS, PARAMETERS
from hpc_train.jobs.read_job import points_of
from hpc_train.jobs.study import ALONE
from hpc_train.reports.report import (
    ABSENT,
    Column,
    Report,
    ReportTable,
    Row,
    Shown,
    counted,
    plain_rows,
    table_of,
)
from hpc_train.sites.detection import choose_site, load_choice

if TYPE_CHECKING:
    import pandas as pd

# Of files that runs write.
_OF_RUNS = (".log", ".out", ".err", ".txt", ".csv", ".json", ".jsonl")
# Without a question, so many nodes at most are looked at.
_NODES = 4
# Steps of one size that differ by more are not of one program, or of one machine.
_CONTRADICTS = 1.2
# The peaks of data sheets, and counts of operations, are rounded.
_ROUNDED = 1.05


class AdviceOptions(Value, frozen=True, kw_only=True):
    """What is asked: the most GPUs, limits, stated conditions, and earlier results."""

    gpus: int | None = None
    deadline: str | None = None
    budget: str | None = None
    conditions: tuple[str, ...] = ()
    measured: tuple[str, ...] = ()
    program: str | None = None
    results: Path = Path("runs")


def advice_of(path: Path, site: str | None, options: AdviceOptions) -> tuple[Advice, Report]:
    """Return the advice on the program of a job or study file, and its report.

    Without results that are stated, those of runs of the same name on the same site are used.

    Raises:
        HpcTrainError: the file, the site, an option or an earlier result is wrong.
    """
    if not path.exists():
        raise SpecError(
            f"{path}: no such file{nearest_file(path)}", "name a job or study file, or a script"
        )
    if path.suffix in _OF_RUNS:
        raise SpecError(
            f"{path}: a log or a table, not a program",
            f"hpctrain report {path}, or hpctrain diagnose {path}; beside a program: "
            f"hpctrain advise train.py --measured {path}",
        )
    study, points = points_of(path)
    job, resources = points[0].job, [point.job.value.resources for point in points]
    gpus = any(one.gpus_per_node != 0 for one in resources)
    machine = machine_of(load_choice(choose_site(site))[1], job.value.partition, gpus=gpus)
    each = max((one.tasks_per_node or 1 for one in resources), default=1)
    machine = replace(machine, ranks_per_node=machine.gpus_per_node or each)
    own = dict(study.spec.conditions) if study is not None else {}
    given = dict(map(parse_condition, options.conditions))
    program = program_of(job, own | given, "--condition" if given else f"{path}: conditions")
    if study is not None:
        program = replace(program, name=study.spec.name)
    programs = frozenset(program_identity(point.job.value) for point in points)
    earlier = _earlier(program.name, machine.site, programs, options)
    program = completed(program, earlier.conditions, "conditions of the measured runs")
    program = completed(program, batch_of(program, earlier.steps), "the measured runs")
    if options.program is not None:
        program = completed(program, count_program(options.program), f"--program {options.program}")
    nodes = [one.nodes or 1 for one in resources]
    asked = sizes_of(options.gpus, machine, nodes)
    question = Question(
        program=program,
        machine=machine,
        sizes=asked,
        measured=earlier.steps,
        deadline_s=_limit(options.deadline, "--deadline", "24h"),
        budget_gpu_hours=_limit(options.budget, "--budget", "500GPUh"),
    )
    check_peak(question)
    advice = advise(question)
    return advice, advice_report(advice, program, machine, earlier.steps, earlier.notes)


def _limit(text: str | None, option: str, example: str) -> float | None:
    """Return the seconds of a deadline, or the GPU-hours of a budget, with or without their unit.

    Raises:
        SpecError: it is neither a time nor a number above 0.
    """
    if text is None:
        return None
    try:
        if option == "--deadline":
            return float(Duration.parse(text))
        hours = float(re.sub(r"(?i)(gpu-?h(ours)?|h)$", "", text.strip()))
    except ValueError:
        hours = 0.0
    if not 0 < hours < float("inf"):
        wrong = f"{option} {text!r}: must be above 0, such as {example}"
        raise SpecError(wrong, f"{option} {example}")
    return hours


def sizes_of(gpus: int | None, machine: MachineSize, nodes: Sequence[int]) -> tuple[int, ...]:
    """Return the numbers of GPUs to look at: doublings up to a node, then whole nodes, doubled.

    Without GPUs they are ranks. The largest is the one asked for, else that of the jobs, which have
    so many `nodes`, or four nodes with GPUs, within the limits of the partition.

    Raises:
        PlanError: the number asked for is not positive, or more than the partition allows.
    """
    node, limit = machine.ranks_per_node, machine.most_ranks
    usual = max(*nodes, _NODES if machine.gpus_per_node else 1)
    most = gpus if gpus is not None else min(usual * node, limit)
    if not 1 <= most <= MOST_RANKS:
        raise PlanError(f"--gpus {most}: must be 1 to {MOST_RANKS:,}", "--gpus 8")
    if most > limit:
        raise PlanError(
            f"--gpus {most}: {machine.site}, {machine.partition} allows {limit} in one job",
            f"--gpus {limit}",
        )
    inside = [size for size in _doublings(1, most) if size < node]
    return tuple(sorted({*inside, *_doublings(node, most), most}))


def _doublings(first: int, most: int) -> Sequence[int]:
    return [first << power for power in range((most // first).bit_length())]


_MODULE = "hpc_train.trainer.count_program"
_FORM = re.compile(r"[A-Za-z_][\w.]{0,200}:[A-Za-z_]\w{0,100}", re.ASCII)
_LONGEST_S = 600.0


def count_program(word: str) -> dict[str, str]:
    """Return the counts of the model that `module:function` returns, as conditions.

    The function runs in a process of its own, in the current folder, and allocates nothing.

    Raises:
        SpecError: no such function, or its model cannot be built or run without values.
        MissingExtraError: torch is not installed.
    """
    if not _FORM.fullmatch(word):
        raise SpecError(f"--program {word!r}: not MODULE:FUNCTION", "--program train:make_model")
    need("hpctrain advise --program", "torch", only=("torch",))
    done = run([python_command(), "-m", _MODULE, word], _LONGEST_S)
    lines = done.stdout.strip().splitlines()
    try:
        found = msgspec.json.decode(lines[-1], type=dict)
    except (IndexError, msgspec.DecodeError):
        last = next(reversed(done.stderr.strip().splitlines()), "it printed nothing")
        raise SpecError(
            f"--program {word}: its process ended with {done.returncode}: {last}",
            f"{python_command()} -m {_MODULE} {word}",
        ) from None
    if "error" in found:
        where = f" ({found['line']})" if found.get("line") else ""
        raise SpecError(f"--program {word}: {found['error']}{where}", found["hint"])
    return {key: str(value) for key, value in found.items()}


class EarlierSteps(Value, frozen=True, kw_only=True):
    """The steps, the conditions of their runs, and why results that are there were not used."""

    steps: tuple[MeasuredStep, ...] = ()
    notes: tuple[str, ...] = ()
    conditions: Mapping[str, str] = MappingProxyType({})


def _earlier(
    name: str, site: str, programs: Collection[tuple[str, ...]], options: AdviceOptions
) -> EarlierSteps:
    """Return the stated results, else the runs of this name and of the same programs on the site.

    The file may have been changed since they ran.
    """
    results = options.results
    if options.measured:
        every = [_steps(word, results, site) for word in options.measured]
        conditions: dict[str, str] = {}
        for one in every:
            conditions |= one.conditions
        return EarlierSteps(
            steps=tuple(step for one in every for step in one.steps),
            notes=tuple(note for one in every for note in one.notes),
            conditions=conditions,
        )
    if not (results / name).is_dir():
        return EarlierSteps()
    try:
        return _steps(str(results / name), results, site, programs)
    except HpcTrainError as failure:
        way = f" ({failure.hint})" if failure.hint else ""
        return EarlierSteps(notes=(f"{results / name} is not used: {failure.message}{way}",))


def _steps(
    word: str, results: Path, site: str, programs: Collection[tuple[str, ...]] | None = None
) -> EarlierSteps:
    """Return the steps and conditions of one result, only of the runs of `programs` if given."""
    # Advice without earlier results needs no pandas.
    need("hpctrain advise with earlier results", "report")
    from hpc_train.reports.report_inputs import report_inputs
    from hpc_train.scaling.runs import run_frame
    from hpc_train.scaling.speedup import speedup_frame
    from hpc_train.scaling.split_series import separated

    inputs = report_inputs([word], Search(root=results))
    elsewhere = sorted({run.manifest.plan.site for run in inputs.own if run.manifest} - {site})
    if programs is not None and elsewhere:
        raise PlanError(f"its runs are from {', '.join(elsewhere)}", f"--measured {word}")
    runs = run_frame(inputs.study, inputs.records)
    known = {
        run.folder.run_id: program_identity(run.manifest.spec) for run in inputs.own if run.manifest
    }
    others = {run for run, program in known.items() if programs and program not in programs}
    runs = separated(runs[~runs["run_id"].isin(others)], inputs.study).runs
    if others and runs.empty:
        raise PlanError("its runs have another command", f"--measured {word}")
    points = plain_rows(speedup_frame(runs, inputs.study))
    strategies = _strategies(plain_rows(runs))
    steps = [
        step
        for row in points
        for step in _step(row, strategies[str(row["series"])], word, here=not elsewhere)
    ]
    if not steps:
        raise PlanError(
            f"{word}: no point with a step time and known ranks",
            f"hpctrain report {word} shows what was read",
        )
    _check_agreement(word, steps)
    return EarlierSteps(
        steps=tuple(steps),
        notes=tuple(_notes(word, elsewhere, others, site, runs)),
        conditions=_common(list(runs["conditions"]), (PARAMETERS, FLOPS)),
    )


def _common(stated: Sequence[Mapping[str, str]], names: Collection[str]) -> dict[str, str]:
    """Return those of these conditions that all runs state, and state alike."""
    found = {name: {own.get(name) for own in stated} for name in names}
    alike = {name: values.pop() for name, values in found.items() if len(values) == 1}
    return {name: value for name, value in alike.items() if value is not None}


_OTHER_WORDS = {
    "fsdp2": "fsdp", "zero3": "fsdp", "fullshard": "fsdp", "hybridshard": "hsdp",
    "dataparallel": "dp", "distributeddataparallel": "ddp", "distributedoptimizer": "zero1",
}  # fmt: skip


def _strategies(runs: Sequence[Row]) -> dict[str, str]:
    """Return the strategy of each series, in our words; empty if its runs do not state one."""
    found: dict[str, set[str]] = {}
    for one in runs:
        stated = one["conditions"].get("strategy") or one.get("axis.strategy") or ""
        word = str(stated).strip().lower()
        word = _OTHER_WORDS.get(re.sub("[-_]", "", word), word)
        found.setdefault(str(one["series"]), set()).add(word)
    return {series: words.pop() if len(words) == 1 else "" for series, words in found.items()}


def _step(row: Row, strategy: str, source: str, *, here: bool) -> Iterator[MeasuredStep]:
    """Yield the step of a point that has a step time or a rate, and whose ranks are known.

    Without a strategy it is `single` or `ddp`. One that advice does not know is kept: no other is
    compared with it.
    """
    seconds, batch, ranks = row["step_time_s"], row["global_batch"], row["ranks"]
    if seconds is None and row["samples_per_second"] and batch:
        seconds = batch / row["samples_per_second"]
    if ranks is None or not seconds:
        return
    named = source if row["series"] == ALONE else f"{source}, {row['series']}"
    yield MeasuredStep(
        seconds=seconds,
        ranks=ranks,
        batch=batch,
        strategy="single" if ranks == 1 else strategy or "ddp",
        source=f"{named}: {counted(ranks, 'rank')}, {counted(row['n_ok'], 'run')}",
        peak_memory_gib=row["memory_gib"],
        data_share=row["data_share"],
        nodes=row["nodes"],
        guessed=not strategy and ranks > 1,
        here=here,
    )


def _notes(
    word: str, elsewhere: Sequence[str], others: Collection[str], site: str, runs: pd.DataFrame
) -> Iterator[str]:
    """Yield what was measured elsewhere or left out, and sizes whose mean says little."""
    if elsewhere:
        yield f"{word} was measured on {', '.join(elsewhere)}, not on {site}."
    if others:
        count, first = f"{len(others)} run{'s' * (len(others) > 1)} of {word}", min(others)
        yield f"Not used, as the command was another: {count}, such as --measured {first}."
    known = runs[runs["step_time_s"] > 0]
    for (_, ranks, _), seconds in known.groupby(["series", "ranks", "nodes"])["step_time_s"]:
        if seconds.max() > _CONTRADICTS * seconds.min():
            ends = range_text(Range(low=seconds.min(), high=seconds.max()), TIME)
            yield (
                f"The runs on {ranks:.0f} rank{'s' * (ranks != 1)} took {ends} a step, of which "
                f"the mean is used: hpctrain report {word} shows them."
            )


def _check_agreement(word: str, steps: Sequence[MeasuredStep]) -> None:
    """Refuse steps of one size that are far apart.

    Raises:
        PlanError: which of them is meant.
    """
    for _, same in groupby(sorted(steps, key=_size), _size):
        ordered = sorted(same, key=lambda one: one.seconds)
        fast, slow = ordered[0], ordered[-1]
        if slow.seconds > _CONTRADICTS * fast.seconds:
            times = " and ".join(
                f"{quantity_text(one.seconds, TIME)} ({one.source})" for one in (fast, slow)
            )
            raise PlanError(
                f"{word}: steps of the same size contradict each other: {times}",
                f"hpctrain report {word} shows its runs; give those of one: --measured RUN",
            )


def check_peak(question: Question) -> None:
    """Refuse steps that are faster than the GPU can compute them.

    Raises:
        PlanError: they are of another program, or what is stated of this one is wrong.
    """
    for one in question.measured:
        used = model_flops_utilisation(question.program, question.machine, one)
        if used is not None and used > _ROUNDED:
            raise PlanError(
                f"{one.source}: {quantity_text(one.seconds, TIME)} a step is {100 * used:.0f} % of "
                "the peak of the GPUs (MFU), more than they can compute",
                "give results of this program: --measured RUN; or state what it does: --condition "
                "precision=bf16, flops_per_sample",
            )


def _size(one: MeasuredStep) -> tuple[str, int, int, float]:
    return one.strategy, one.ranks, one.nodes or 0, one.batch or 0.0


_GIB = 2.0**30
_WORDS = {"yes": "yes", "no": "no", "perhaps": "perhaps", "unknown": ABSENT}
FORECASTS = (
    "forecast: the last slope of the measured sizes, continued; its band covers the forecasts "
    "that leave out one point each, and is 8 % wider for each doubling."
)
NOTES = (
    "A bound without an upper end is written with >=. Without a measured step there is no upper "
    "bound of the time: a formula alone says only what is impossible.",
    "step: max(compute, communication) <= T <= compute + communication; compute is the measured "
    "step in proportion to the samples of a rank, or the operations over the peak (lower bound).",
    "memory: parameters, gradients and state of the optimiser, gathered parameters, buckets, "
    "activations, logits, and the context of CUDA and NCCL; kinds are in JSON.",
)


def advice_report(
    advice: Advice,
    program: ProgramSize,
    machine: MachineSize,
    measured: Sequence[MeasuredStep] = (),
    unused: Sequence[str] = (),
) -> Report:
    """Return the report; JSON has `rows` with bounds as {"low", "high"} and memory by kind.

    `unused` are notes on results that were not used.
    """
    each = machine.gpus_per_node
    gpu = f"{each} {machine.gpu or 'GPUs'} a node" if each else "no GPUs"
    notes = [*unused, *NOTES]
    if advice.refused:
        notes.append(f"Without a row: {'; '.join(reason for _, reason in advice.refused)}.")
    if any(row.forecast is not None for row in advice.rows):
        notes.append(FORECASTS)
    notes += [f"Without a forecast: {text}." for text in advice.not_forecast]
    notes += [f"Missing: {text}." for text in advice.missing]
    return Report(
        title=f"{program.name} on {machine.site}, {machine.partition} ({gpu})",
        summary=(advice.one_rank, advice.recommended, advice.limit),
        tables=(_rows(advice.rows, machine), _known_values(program, machine, measured)),
        notes=tuple(notes),
        name=program.name,
        kind="Advice",
        all_met="",
        of_runs=False,
    )


def _rows(rows: Sequence[AdviceRow], machine: MachineSize) -> ReportTable:
    unit = "GPU" if machine.gpus_per_node else "rank"
    columns: list[Shown] = [
        (Column("strategy", "strategy", "left"), lambda row: row.strategy),
        (Column("ranks", f"{unit}s"), lambda row: str(row.ranks)),
        (Column("nodes", "nodes", drop=1), lambda row: str(row.nodes)),
        (
            Column("memory", f"memory\n[GiB/{unit}]"),
            lambda row: bounds_text(row.memory and row.memory.whole.times(1 / _GIB)),
        ),
        (Column("fits", "fits", "left", drop=5), lambda row: _WORDS[row.fits]),
        (
            Column("sent", "sent in\na step", drop=2),
            lambda row: ABSENT if row.sent is None else quantity_text(row.sent, BYTES),
        ),
        (
            Column("step", "step"),
            lambda row: bounds_text(row.step, TIME) + " measured" * row.measured,
        ),
        (Column("speedup", "speedup", drop=8), lambda row: bounds_text(row.speedup)),
        (Column("end", "time", drop=7), lambda row: bounds_text(row.end, TIME)),
        (
            Column("gpu_hours", f"{unit} time", drop=6),
            lambda row: bounds_text(row.gpu_hours, hours_of("")),
        ),
        (
            Column("verdict", "verdict", "left", prose=True),
            lambda row: ": ".join(filter(None, (row.verdict, row.reason))) + row.assuming,
        ),
    ]
    shown = [one for one in columns if any(one[1](row) != ABSENT for row in rows)]
    return table_of("Strategies", "rows", shown, rows, tuple(map(_record, rows)))


def bounds_text(bounds: Range | None, units: Units = NUMBER) -> str:
    """Return `0.14 to 0.15 s`, `>= 0.14 s`, `--` if nothing is known."""
    if bounds is None or (bounds.high is None and bounds.low == 0):
        return ABSENT
    return range_text(bounds, units)


def _ends(bounds: Range | None) -> dict[str, float | None] | None:
    return None if bounds is None else {"low": bounds.low, "high": bounds.high}


def _record(row: AdviceRow) -> dict[str, Any]:
    kinds = {} if row.memory is None else row.memory.kinds
    return {
        "strategy": row.strategy,
        "ranks": row.ranks,
        "nodes": row.nodes,
        "samples_per_rank": row.samples,
        "memory_bytes": {name: _ends(bounds) for name, bounds in kinds.items()} or None,
        "fits": row.fits,
        "sent_bytes": row.sent,
        "step_s": _ends(row.step),
        "measured": row.measured,
        "forecast_s": row.forecast,
        "speedup": _ends(row.speedup),
        "efficiency": _ends(row.efficiency),
        "end_s": _ends(row.end),
        "gpu_hours": _ends(row.gpu_hours),
        "change": row.change or None,
        "verdict": row.verdict,
        "reason": row.reason,
        "assumes": [*row.memory_assumes, *row.step_assumes],
    }


def _known_values(
    program: ProgramSize, machine: MachineSize, measured: Sequence[MeasuredStep]
) -> ReportTable:
    """Return every value that the advice rests on, and where it comes from."""
    known = [
        (name, getattr(subject, name), source)
        for subject in (program, machine)
        for name, source in subject.sources.items()
    ]
    steps = [("step [s]", one.seconds, one.source) for one in measured]
    rows = [{"name": name, "value": v, "source": source} for name, v, source in (*known, *steps)]
    columns: list[Shown] = [
        (Column("name", "value", "left"), lambda row: str(row["name"])),
        (Column("value", "", "left", prose=True), lambda row: _text(row["value"])),
        (Column("source", "from", "left", prose=True), lambda row: str(row["source"])),
    ]
    return table_of("What is known", "sources", columns, rows)


def _text(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{key} {number:g}" for key, number in value.items())
    return f"{value:.6g}" if isinstance(value, float) else str(value)
