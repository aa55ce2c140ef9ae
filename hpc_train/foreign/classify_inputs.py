"""Arguments -> run folders, or foreign files and their kind; the file that states their sizes."""

import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from hpc_train.base.decode import decode
from hpc_train.base.errors import LogParseError, UnknownNameError, nearest
from hpc_train.base.files import open_regular
from hpc_train.base.metrics import UNITS
from hpc_train.base.values import Value
from hpc_train.base.yamlfile import join, read
from hpc_train.jobs.study import Gates, Scalar, Scaling, Warmup
from hpc_train.logs.collect import no_such_file
from hpc_train.logs.log_file import DAMAGE, UNPACK
from hpc_train.logs.record import (
    BATCH,
    SIZES,
    Record,
    Stated,
    complete_sizes,
    is_record_file,
    kind_of,
    misspelt,
    plain_name,
)
from hpc_train.runs.expected_runs import EXCLUDED, ExpectedRun, ExpectedStudy
from hpc_train.runs.json_files import expanded
from hpc_train.runs.run import JobState
from hpc_train.runs.run_folders import find


def classify(words: Sequence[str], root: Path) -> tuple[list[Path], list[Path]]:
    """Split arguments into foreign files and folders of runs; return both.

    Raises:
        UnknownNameError: an argument is neither. LogParseError: it can only be a file, which does
        not exist.
    """
    logs: list[Path] = []
    homes: list[Path] = []
    for word in words:
        try:
            homes.append(find(root, word))
        except UnknownNameError as unknown:
            paths = _files(word)
            if not paths:
                file, sheet = _with_sheet(word)
                raise no_such_file(str(file) if sheet else word) or unknown from None
            if Path(word).suffix == ".py":
                raise LogParseError(
                    f"{word}: a program, not a log", f"hpctrain submit {word}, then name its run"
                ) from None
            logs += paths
    return logs, homes


def _files(word: str) -> list[Path]:
    """Return the files of an argument, each with the sheet if it names one."""
    file, sheet = _with_sheet(word)
    return [Path(f"{path}:{sheet}") for path in expanded(str(file))] if sheet else expanded(word)


def _with_sheet(word: str) -> tuple[Path, str]:
    """Return workbook and sheet of `FILE.xlsx:SHEET`; else the path and no sheet."""
    if ".xls" not in word.lower():
        return Path(word), ""
    from hpc_train.foreign.table_file import sheet_of

    return sheet_of(Path(word))


_TABLE = "table"
"""The format of a table of results whose file name does not show it, such as stdin."""
_LOGS = (".log", ".out", ".err")
InputKind = Literal["tables", "records", "points", "logs"]


def _kind_of_file(path: Path) -> InputKind:
    """Return the kind of a file, from its extension and its first line; a folder contains logs."""
    if path.suffix in (".yaml", ".yml") and path.is_file():
        return "points"
    if path.suffix == ".parquet" and path.is_file():
        from hpc_train.foreign.parquet import has_records

        return "records" if has_records(path) else "tables"
    try:
        if is_record_file(path):
            return "records"
        if path.suffix in _LOGS and path.is_file():
            return "logs"
        from hpc_train.foreign.table_file import is_result_table

        return "tables" if is_result_table(path) else "logs"
    except OSError:
        return "logs"


def one_kind(paths: Sequence[Path], form: str) -> InputKind:
    """Return the common kind of all paths; with the form `table`, it is that of tables.

    Raises:
        LogParseError: they are of several kinds, several files of sizes, or a named pipe.
    """
    kinds: dict[InputKind, Path] = {}
    for path in paths:
        if path.is_fifo() and not path.is_relative_to("/dev"):
            # Reading it would block until another process writes.
            raise LogParseError(f"{path}: a pipe, not a file", "use `-` for stdin")
        kinds.setdefault("tables" if form == _TABLE else _kind_of_file(path), path)
    if len(kinds) > 1:
        named = " and ".join(f"{kind} ({path})" for kind, path in kinds.items())
        hint = "give the sizes of logs with --points FILE" if "points" in kinds else ""
        raise LogParseError(
            f"{named} cannot be put into one report", hint or "make a report of each kind"
        )
    kind = next(iter(kinds))
    if kind == "points" and len(paths) > 1:
        raise LogParseError("a report accepts one file of sizes", "put all logs into one of them")
    return kind


def refuse_same_logs(study: ExpectedStudy, files: Mapping[str, Sequence[Path]]) -> None:
    """Refuse completed runs if the logs of two of them are the same, byte for byte, unpacked.

    Raises:
        LogParseError: two logs are the same; the message names both runs.
    """
    ok = JobState.COMPLETED.value
    counted = {run.run_id: files.get(run.run_id, ()) for run in study.runs if run.state == ok}
    packed = any(path.suffix in UNPACK for paths in counted.values() for path in paths)
    sizes = {
        name: tuple(0 if packed else path.stat().st_size for path in paths)
        for name, paths in counted.items()
        if paths and all(path.is_file() for path in paths)
    }
    counts, names = Counter(sizes.values()), dict[str, str]()
    for name in (name for name, size in sizes.items() if counts[size] > 1):
        try:
            digest = _digest(counted[name])
        except (*DAMAGE, LogParseError):
            continue
        if (one := names.setdefault(digest, name)) != name:
            raise LogParseError(
                f"{one} and {name} are the same log, byte for byte: one job, not two repetitions",
                f"give one of them, or exclude one: --exclude '{name}=a copy of {one}'",
            )


def _digest(paths: Sequence[Path]) -> str:
    digest = hashlib.sha256()
    for path in paths:
        with open_regular(path) as file:
            unpacked = UNPACK[path.suffix](file) if path.suffix in UNPACK else file
            while block := unpacked.read(1 << 20):
                digest.update(block)
        digest.update(b"\0")
    return digest.hexdigest()


_ALLOWED = (*SIZES, BATCH, "exclude")
_Count = Annotated[int, Meta(ge=1, le=10**9)]
# As in the run table: the log contradicts the stated value.
_UNPARSED = "UNPARSED"


class _Known(Value, frozen=True, kw_only=True):
    """The keys of one log that are neither axes nor conditions."""

    nodes: _Count | None = None
    gpus_per_node: Annotated[int, Meta(ge=0, le=10**9)] | None = None
    tasks_per_node: _Count | None = None
    cpus_per_task: _Count | None = None
    gpus: _Count | None = None
    ranks: _Count | None = None
    global_batch_size: Annotated[float, Meta(gt=0, le=1e15)] | None = None
    exclude: str = ""


class _File(Value, frozen=True, kw_only=True):
    """A file with keys of the study in addition to the sizes."""

    points: Annotated[dict[str, Any], Meta(min_length=1)]
    name: str | None = None
    scaling: Scaling | None = None
    baseline: dict[str, Scalar] | None = None
    warmup: Warmup | None = None
    gates: Gates = Gates()


class Points(Value, frozen=True, kw_only=True):
    """Stated values, by log name or pattern.

    `places` has the origin of each key; `changes` are fields of the study.
    """

    path: Path
    stated: Mapping[str, Stated]
    places: Mapping[str, str]
    changes: Mapping[str, Any]


def read_points(path: Path) -> Points:
    """Read a file of sizes: log -> sizes, or these below `points:` with a name, gates and more.

    Raises:
        LogParseError: a key or value is invalid, or sizes contradict one another, with file:line.
    """
    document = read(path, LogParseError)
    content, origins = document.data, document.origins
    if not isinstance(content, dict):
        raise LogParseError(f"{path}: a mapping is needed: log: {{nodes: 2, gpus_per_node: 4}}")
    if not set(content) & set(_File.__struct_fields__):
        content = {"points": content}
        origins = {join("points", key): place for key, place in origins.items()}
    file = decode(content, _File, {**origins, "": str(path)}, LogParseError).value
    places = {key: origins[join("points", key)] for key in file.points}
    stated = {}
    for key, entry in file.points.items():
        if not isinstance(entry, dict) or not entry:
            log = "some.log" if plain_name(key) in _ALLOWED else key
            raise LogParseError(
                f"{places[key]}: {key}: a mapping of sizes is needed",
                f"name the log first: {log}: {{nodes: 2, gpus_per_node: 4}}",
            )
        own = {name: origins[join(join("points", key), name)] for name in entry}
        stated[key] = _stated(entry, {**own, "": places[key]})
    fields = {name: getattr(file, name) for name in _File.__struct_fields__ if name != "points"}
    changes = {name: value for name, value in fields.items() if value}
    return Points(path=path, stated=stated, places=places, changes=changes)


def _stated(entry: Mapping[str, Any], origins: dict[str, str]) -> Stated:
    found: dict[str, dict[str, Any]] = {"known": {}, "axis": {}, "condition": {}, "unused": {}}
    for key, value in entry.items():
        word, place = plain_name(key), origins[key]
        kind = "known" if word in _ALLOWED else kind_of(word)
        meant = misspelt(word, _ALLOWED)
        if meant or kind not in found:
            near = f"; did you mean {meant!r}?" if meant else "; it is read from the log"
            raise LogParseError(
                f"{place}: unknown key {key!r}{near}",
                f"allowed: {', '.join(_ALLOWED)}, conditions (torch, partition …) and axes",
            )
        if not isinstance(value, (str, int, float)):
            raise LogParseError(f"{place}: {key} must be a number or a word")
        if word in found[kind]:
            raise LogParseError(f"{place}: {word} is stated twice, here as {key!r}")
        found[kind][word] = str(value) if kind == "condition" else value
        origins.setdefault(word, place)
    given = decode(found["known"], _Known, origins, LogParseError).value
    sizes = {name: getattr(given, name) for name in SIZES if getattr(given, name) is not None}
    if not sizes and not given.exclude:
        raise LogParseError(f"{origins['']}: no size is stated", f"one of: {', '.join(SIZES)}")
    try:
        sizes = complete_sizes(sizes)
    except ValueError as wrong:
        raise LogParseError(f"{origins['']}: {wrong}") from None
    return Stated(
        sizes=sizes, global_batch=given.global_batch_size, axes=found["axis"],
        conditions=found["condition"], exclude=given.exclude,
    )  # fmt: skip


def logs_named(points: Points) -> list[Path]:
    """Return the logs that the keys name: paths and patterns, relative to the file.

    Raises:
        LogParseError: a key names none.
    """
    found: dict[Path, None] = {}
    for key, place in points.places.items():
        pattern = points.path.parent / key
        if not (paths := expanded(str(pattern))):
            near = nearest(pattern.name, [entry.name for entry in pattern.parent.glob("*")])
            hint = f"looked in {pattern.parent}"
            raise LogParseError(f"{place}: no log is called {key!r}{near}", hint)
        found.update(dict.fromkeys(paths))
    return list(found)


def _key_by_run(points: Points, runs: Mapping[str, Sequence[Path]]) -> dict[str, str]:
    """Return the key that names each run; an exact name takes precedence over a pattern.

    Raises:
        LogParseError: a key names no run, or two patterns name the same one.
    """
    found: dict[str, str] = {}
    unused = dict(points.places)
    ends = {key: f"/{str(Path(key)).lstrip('/')}" for key in unused}
    patterns = [key for key in unused if any(letter in key for letter in "*?[")]
    for run, paths in runs.items():
        # A log may be named by the folder that it is in.
        names = [Path("/", run), *(own.absolute() for own in paths)]
        names += [name.parent for name in names[1:]]
        keys = [key for key, end in ends.items() if any(str(name).endswith(end) for name in names)]
        keys = keys or [key for key in patterns if any(name.match(key) for name in names)]
        for key in keys:
            unused.pop(key, None)
        if len(keys) > 1:
            both = " and ".join(f"{key!r} ({points.places[key]})" for key in keys[:2])
            raise LogParseError(f"{both} both name {run}", "keep one key for each log")
        if keys:
            found[run] = keys[0]
    for key, place in unused.items():
        raise LogParseError(
            f"{place}: no log or run is called {key!r}{nearest(key, runs)}",
            f"there are: {', '.join(list(runs)[:8])}{', …' if len(runs) > 8 else ''}",
        )
    return found


def sized(
    study: ExpectedStudy,
    run_level: Sequence[Record],
    points: Points,
    logs: Mapping[str, list[Path]],
) -> tuple[ExpectedStudy, tuple[Record, ...]]:
    """Return the study with the stated values of its runs, and a record of each stated batch.

    `run_level` are the records with the sizes of the runs. A run that contradicts its stated size
    has no result.

    Raises:
        LogParseError: a key of the file names no run.
    """
    found = {
        run: (points.places[key], points.stated[key])
        for run, key in _key_by_run(points, logs).items()
    }
    records = tuple(
        Record(
            run=run, source=place.rpartition(":")[0], line=int(place.rpartition(":")[2]),
            parser="points", metric=BATCH, value=stated.global_batch, unit=UNITS[BATCH],
            scope="global",
        )
        for run, (place, stated) in found.items()
        if stated.global_batch is not None
    )  # fmt: skip
    notes = study.notes
    if unstated := [run.run_id for run in study.runs if run.run_id not in found]:
        shown = ", ".join(unstated[:6]) + (", …" if len(unstated) > 6 else "")
        said = f"{points.path} does not state {shown}"
        notes = (*notes, f"{said}: the size is taken from the log, if it contains one")
    runs = _with_stated(study, run_level, found)
    return msgspec.structs.replace(study, runs=runs, notes=notes, **points.changes), records


def in_order(
    study: ExpectedStudy, run_level: Sequence[Record], sizes: Mapping[str, tuple[int, ...]]
) -> ExpectedStudy:
    """Return the study with sizes that were stated as options, a number for each log.

    Raises:
        LogParseError: other than one number for each log, numbers that contradict one another, or
        a log that contradicts its number.
    """
    names = [run.run_id for run in study.runs]
    for option, numbers in sizes.items():
        if len(numbers) != len(names):
            shown = ", ".join(names[:8]) + (", …" if len(names) > 8 else "")
            raise LogParseError(
                f"--{option} has {len(numbers)} number{'s' * (len(numbers) != 1)}, and there are "
                f"{len(names)} logs: {shown}",
                "give a number for each log, in this order",
            )
    found: dict[str, tuple[str, Stated]] = {}
    for place, name in enumerate(names):
        own = {option: numbers[place] for option, numbers in sizes.items()}
        words = " ".join(f"--{option} {number}" for option, number in own.items())
        try:
            found[name] = words, Stated(sizes=complete_sizes(own))
        except ValueError as wrong:
            raise LogParseError(f"{name}: {words}: {wrong}") from None
    runs = _with_stated(study, run_level, found)
    for old, new in zip(study.runs, runs, strict=True):
        if new.problem != old.problem:
            raise LogParseError(f"{new.run_id}: {new.problem}")
    return msgspec.structs.replace(study, runs=runs)


def _with_stated(
    study: ExpectedStudy,
    run_level: Sequence[Record],
    found: Mapping[str, tuple[str, Stated]],
) -> tuple[ExpectedRun, ...]:
    """Return the runs with their stated values, each with its place."""
    printed: dict[str, list[Record]] = {}
    for record in run_level:
        if record.metric in ("world_size", BATCH) and not record.variant:
            printed.setdefault(record.run, []).append(record)
    runs: list[ExpectedRun] = []
    counts: Counter[str] = Counter()
    for run in study.runs:
        if run.run_id in found:
            place, stated = found[run.run_id]
            counts[repr(stated)] += 1
            state, problem = run.state, run.problem
            if stated.exclude:
                state, problem = EXCLUDED, stated.exclude
            elif wrong := next(_contradictions(run, stated, printed.get(run.run_id, ())), ""):
                state, problem = _UNPARSED, f"{wrong}, {place} states another number"
            run = msgspec.structs.replace(
                run, axes={**run.axes, **stated.axes}, sizes=stated.sizes, state=state,
                problem=problem, conditions={**run.conditions, **stated.conditions},
                repetition=counts[repr(stated)],
            )  # fmt: skip
        runs.append(run)
    return tuple(runs)


def _contradictions(run: ExpectedRun, stated: Stated, printed: Sequence[Record]) -> Iterator[str]:
    ranks = stated.sizes.get("ranks")
    planned = {"world_size": ranks, BATCH: stated.global_batch}
    for record in printed:
        wanted = planned[record.metric]
        if wanted is not None and record.value != wanted:
            yield (
                f"the log says {record.metric} {record.value:g}, not {wanted:g} "
                f"({record.source}:{record.line})"
            )
    if ranks is not None and run.ranks > ranks:
        yield f"the log names rank {run.ranks - 1}, so it is not of {ranks}"
