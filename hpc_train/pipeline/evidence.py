"""Run folders and foreign logs -> the runs that a report expects, and their records."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import msgspec

from hpc_train.errors import LogParseError, StoreError, UnknownNameError
from hpc_train.model.measurement import MISSING, ExpectedRun, ExpectedStudy
from hpc_train.model.record import Record
from hpc_train.model.run import Run
from hpc_train.model.study import Gates, StudyManifest, Warmup
from hpc_train.model.submission import JobState
from hpc_train.model.value import Value
from hpc_train.pipeline.query import latest_attempts, runs_below
from hpc_train.records.collect import collect
from hpc_train.runs.files import write_file
from hpc_train.runs.store import find, read_study


class Evidence(Value, frozen=True, kw_only=True):
    """What was asked for, and what was measured."""

    study: ExpectedStudy
    records: tuple[Record, ...]


def evidence(words: Sequence[str], root: Path, parser: str = "auto") -> Evidence:
    """Gather a study, a job's runs, one run, or log files of anybody.

    Raises:
        UnknownNameError: a word names neither a run nor a file.
        StoreError: study.json is damaged, or several studies are mixed.
        LogParseError: a log cannot be read.
    """
    logs, homes = _sort(words, root)
    if logs and homes:
        raise StoreError("foreign logs and run folders cannot be put into one table")
    if logs:
        return _foreign(logs, parser)
    if len(homes) > 1:
        names = ", ".join(home.name for home in homes)
        raise StoreError(f"one table is made of one study, not of {len(homes)}: {names}")
    return _own(homes[0], parser)


def _sort(words: Sequence[str], root: Path) -> tuple[list[Path], list[Path]]:
    """Tell foreign logs from run folders."""
    logs: list[Path] = []
    homes: list[Path] = []
    for word in words:
        try:
            homes.append(find(root, word))
        except UnknownNameError:
            if not Path(word).exists():
                raise
            logs.append(Path(word))
    return logs, homes


def _own(home: Path, parser: str) -> Evidence:
    runs = runs_below(home)
    manifest = read_study(home)
    study = _expected(manifest, runs) if manifest else _single_jobs(home, runs)
    wanted = {run.run_id for run in study.runs}
    records = [r for run in runs if run.folder.run_id in wanted for r in records_of(run, parser)]
    return Evidence(study=study, records=tuple(records))


def records_of(run: Run, parser: str = "auto") -> tuple[Record, ...]:
    """Return a run's records: from its logs or, where they are gone, from records.jsonl.

    Those of a finished run are kept in records.jsonl; a folder that cannot be written is no
    reason to refuse the answer.
    """
    folder = run.folder
    if not folder.logs.is_dir():
        return _kept(folder.records)
    records = tuple(collect(folder.run_id, [folder.logs], parser, root=folder.path))
    if run.state.finished and parser == "auto":
        lines = b"".join(msgspec.json.encode(record) + b"\n" for record in records)
        if not folder.records.exists() or folder.records.read_bytes() != lines:
            try:
                write_file(folder.records, lines)
            except StoreError:
                return records
    return records


def _kept(path: Path) -> tuple[Record, ...]:
    if not path.exists():
        return ()
    try:
        return tuple(msgspec.json.Decoder(Record).decode_lines(path.read_bytes()))
    except msgspec.DecodeError as failure:
        raise LogParseError(f"{path}: damaged: {failure}") from None


def _expected(manifest: StudyManifest, runs: Sequence[Run]) -> ExpectedStudy:
    """List every run that the study asked for, the missing ones too."""
    latest = latest_attempts(runs)
    expected = []
    for point in manifest.points:
        for repetition in range(1, manifest.spec.repetitions + 1):
            stem = f"{point.stem}-r{repetition}"
            _, run = latest.get(stem, (0, None))
            expected.append(
                ExpectedRun(
                    run_id=run.folder.run_id if run else stem,
                    axes=point.axes,
                    repetition=repetition,
                    topology=point.topology,
                    state=run.state.value if run else MISSING,
                    problem=run.problem if run else "never submitted, or its folder was removed",
                )
            )
    return ExpectedStudy(
        name=manifest.spec.name,
        runs=tuple(expected),
        baseline=manifest.baseline,
        scaling=manifest.spec.scaling,
        warmup=manifest.spec.warmup,
        gates=manifest.spec.gates,
        notes=(
            *_placement(manifest),
            *_damaged(runs),
            *_other_runs(runs, {run.run_id for run in expected}),
        ),
    )


def _placement(manifest: StudyManifest) -> tuple[str, ...]:
    """A replicate inside one allocation shows less of the variation than one that has its own."""
    if manifest.spec.placement != "nested":
        return ()
    return (
        "placement nested: the runs took turns on the same nodes, inside one allocation (or one "
        "for each submission); the intervals do not show how allocations differ",
    )


def _damaged(runs: Sequence[Run]) -> tuple[str, ...]:
    """Name what cannot be read of a run, though its logs can."""
    return tuple(f"{run.folder.run_id}: {run.problem}" for run in runs if run.manifest is None)


def _other_runs(runs: Sequence[Run], expected: set[str]) -> tuple[str, ...]:
    """Name what lies in the folder and is not in the table: nothing disappears silently."""
    others = [run.folder.run_id for run in runs if run.folder.run_id not in expected]
    if not others:
        return ()
    shown = ", ".join(others[:6]) + (" …" if len(others) > 6 else "")
    return (f"{len(others)} earlier attempts or runs of an earlier version are left out: {shown}",)


def _single_jobs(home: Path, runs: Sequence[Run]) -> ExpectedStudy:
    if not runs:
        raise StoreError(f"{home}: no runs in this folder")
    seen: Counter[str] = Counter()
    expected = []
    for run in runs:
        plan = run.manifest.plan if run.manifest else None
        key = repr(plan.topology) if plan else "unknown"
        seen[key] += 1
        expected.append(
            ExpectedRun(
                run_id=run.folder.run_id,
                axes={},
                repetition=seen[key],
                topology=plan.topology if plan else None,
                state=run.state.value,
                problem=run.problem,
            )
        )
    return _undeclared(home.name, tuple(expected))


def _foreign(logs: Sequence[Path], parser: str) -> Evidence:
    """Take each file as one run, and a folder of rank files as one run."""
    expected: list[ExpectedRun] = []
    records: list[Record] = []
    runs = [run for path in dict.fromkeys(logs) for run in _runs_of(path)]
    names = Counter(path.name for path, _ in runs)
    for path, files in runs:
        # Two logs of one name in different folders are two runs.
        run_id = path.name if names[path.name] == 1 else str(path)
        found = list(collect(run_id, files, parser))
        problem = "" if found else "no line that any parser knows; see docs/events.md"
        state = JobState.COMPLETED if found else JobState.UNKNOWN
        expected.append(
            ExpectedRun(
                run_id=run_id,
                axes={},
                repetition=len(expected) + 1,
                topology=None,
                state=state.value,
                problem=problem,
            )
        )
        records += found
    # The first interval that a framework reports holds compilation and the set-up of NCCL.
    study = _undeclared("logs", tuple(expected), Warmup(steps=1))
    return Evidence(study=study, records=tuple(records))


def _runs_of(path: Path) -> list[tuple[Path, list[Path]]]:
    if not path.is_dir() or any(path.glob("rank-*.out")):
        return [(path, [path])]
    files = [file for file in sorted(path.iterdir()) if file.is_file()]
    if not files:
        raise LogParseError(f"{path}: no log files in this folder")
    return [(file, [file]) for file in files]


def _undeclared(
    name: str, runs: tuple[ExpectedRun, ...], warmup: Warmup | None = None
) -> ExpectedStudy:
    return ExpectedStudy(
        name=name,
        runs=runs,
        baseline={},
        scaling=None,
        warmup=warmup or Warmup(),
        gates=Gates(),
    )
