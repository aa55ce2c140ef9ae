"""Run folders and foreign logs -> the runs that a report expects, and their records."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import chain
from pathlib import Path

import msgspec

from hpc_train.errors import LogParseError, StoreError, UnknownNameError
from hpc_train.model.measurement import MISSING, ExpectedRun, ExpectedStudy
from hpc_train.model.record import Record
from hpc_train.model.run import Run
from hpc_train.model.study import Gates, StudyManifest, Warmup
from hpc_train.model.submission import JobState
from hpc_train.model.value import Value
from hpc_train.pipeline.foreign import expanded, foreign_runs
from hpc_train.pipeline.query import latest_attempts, runs_below
from hpc_train.records.census import Census
from hpc_train.records.collect import logs_of, records_of, wanted
from hpc_train.records.index import Index
from hpc_train.records.reading import Log, Wanted
from hpc_train.runs.files import write_file
from hpc_train.runs.store import find, read_study


class Evidence(Value, frozen=True, kw_only=True):
    """What was asked for, and what was measured."""

    study: ExpectedStudy
    records: tuple[Record, ...]


def evidence(
    words: Sequence[str],
    root: Path,
    parser: str = "auto",
    *,
    prefix: str = "",
    census: Census | None = None,
) -> Evidence:
    """Gather a study, a job's runs, one run, or log files of anybody; `census` is added to.

    Raises:
        UnknownNameError: a word names neither a run nor a file.
        StoreError: study.json is damaged, or several studies are mixed.
        LogParseError: a log cannot be read.
    """
    logs, homes = sort_words(words, root)
    look, seen = wanted(parser, prefix), Census() if census is None else census
    if logs and homes:
        raise StoreError("foreign logs and run folders cannot be put into one table")
    if logs:
        return _foreign(logs, look, seen)
    if len(homes) > 1:
        names = ", ".join(home.name for home in homes)
        raise StoreError(f"one table is made of one study, not of {len(homes)}: {names}")
    return _own(homes[0], look, seen)


def sort_words(words: Sequence[str], root: Path) -> tuple[list[Path], list[Path]]:
    """Tell foreign logs from run folders.

    Raises:
        UnknownNameError: a word names neither a run nor a file.
    """
    logs: list[Path] = []
    homes: list[Path] = []
    for word in words:
        try:
            homes.append(find(root, word))
        except UnknownNameError:
            found = expanded(word)
            if not found:
                raise
            logs += found
    return logs, homes


def _own(home: Path, look: Wanted, census: Census) -> Evidence:
    runs = runs_below(home)
    manifest = read_study(home)
    study = _expected(manifest, runs) if manifest else _single_jobs(home, runs)
    ours = {run.run_id for run in study.runs}
    records = [
        record
        for run in runs
        if run.folder.run_id in ours
        for record in _records_of(run, look, census)
    ]
    return Evidence(study=study, records=tuple(records))


def _records_of(run: Run, look: Wanted, census: Census) -> tuple[Record, ...]:
    """Return a run's records: from its logs or, where they are gone, from records.jsonl.

    Those of a finished run are kept in records.jsonl; a folder that cannot be written is no
    reason to refuse the answer.
    """
    folder, seen = run.folder, Census()
    if not folder.logs.is_dir():
        return _kept(folder.records)
    logs = logs_of(folder.run_id, [folder.logs], folder.path)
    if len(look.parsers) == 1 or look.prefix:
        return tuple(records_of(logs, look, seen))
    records = tuple(indexed(logs, look, seen, folder.index))
    census.add(seen)
    if run.state.finished:
        lines = b"".join(msgspec.json.encode(record) + b"\n" for record in records)
        if not folder.records.exists() or folder.records.read_bytes() != lines:
            _write_if_possible(folder.records, lines)
    return records


def indexed(logs: Sequence[Log], look: Wanted, census: Census, path: Path) -> Iterator[Record]:
    """Yield the records of logs by the index in a file, which is written if it can be."""
    index = Index(look, path.read_bytes() if path.is_file() else b"")
    yield from records_of(logs, look, census, index)
    content = index.content()
    if content is not None:
        _write_if_possible(path, content)


def _write_if_possible(path: Path, content: bytes) -> None:
    with suppress(StoreError, OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        write_file(path, content)


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


def _foreign(paths: Sequence[Path], look: Wanted, census: Census) -> Evidence:
    runs = foreign_runs(paths)
    logs = list(chain.from_iterable(runs.values()))
    records = tuple(records_of(logs, look, census))
    found = {record.run for record in records}
    expected = [
        ExpectedRun(
            run_id=run,
            axes={},
            repetition=number,
            topology=None,
            state=(JobState.COMPLETED if run in found else JobState.UNKNOWN).value,
            problem="" if run in found else "no line that any parser knows; see docs/logs.md",
        )
        for number, run in enumerate(runs, start=1)
    ]
    # The first interval that a framework reports holds compilation and the set-up of NCCL.
    study = _undeclared("logs", tuple(expected), Warmup(steps=1))
    return Evidence(study=study, records=records)


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
