"""The records of runs as arrays, and those of a run as a whole."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from hpc_train.base.errors import ReportError
from hpc_train.base.metrics import RATE_RECORDS, UNITS
from hpc_train.logs.record import Pack, Record, packs_of
from hpc_train.runs.expected_runs import OF_WHICH

Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]
TEXTS = ("run", "source", "parser", "metric", "scope", "node", "variant")
WHOLE = ("line", "step", "rank", "steps")
# Value of a step, rank or size that the line does not name; no log has such a number.
NONE = int(np.iinfo(np.int64).min)
_ABSENT = -1
# Numbers that the records of a kind share.
_SHARED = ("steps", "message_size")


class TextCodes(NamedTuple):
    """Texts as indexes of `names`; -1 if there is none."""

    codes: NDArray[np.signedinteger[Any]]
    names: Sequence[str]

    def among(self, wanted: Iterable[str]) -> Ints:
        """Return the index of each text in `wanted`, -1 for other texts."""
        order = {name: place for place, name in enumerate(wanted)}
        places = [order.get(name, -1) for name in self.names]
        found: Ints = np.array([*places, -1], dtype=np.int64)[self.codes]
        return found

    def led_by(self, first: Sequence[str]) -> TextCodes:
        """Return the same texts, numbered so that these names come first, in their order."""
        if self.names[: len(first)] == first:
            return self
        names = list(dict.fromkeys([*first, *self.names]))
        return TextCodes(self.among(names), names)

    def texts(self) -> Iterator[str | None]:
        """Yield the texts."""
        names = [*self.names, None]
        return (names[code] for code in self.codes.tolist())


class RecordArrays(NamedTuple):
    """The fields of `Record`, in the order of the records."""

    run: TextCodes
    source: TextCodes
    parser: TextCodes
    metric: TextCodes
    scope: TextCodes
    node: TextCodes
    variant: TextCodes
    unit: TextCodes
    line: Ints
    step: Ints
    rank: Ints
    steps: Ints
    message_size: Ints
    value: NDArray[np.float64]

    def take(self, places: Ints) -> RecordArrays:
        """Return some of the records."""
        return RecordArrays._make(
            TextCodes(column.codes[places], column.names)
            if isinstance(column, TextCodes)
            else column[places]
            for column in self
        )

    def records(self) -> Iterator[Record]:
        """Yield the records as objects, which need twenty times the memory."""
        columns = [
            column.texts() if isinstance(column, TextCodes) else map(_known, column.tolist())
            for column in self[:-1]
        ]
        for row in zip(*columns, self.value.tolist(), strict=True):
            fields: dict[str, Any] = dict(zip(self._fields, row, strict=True))
            yield Record(**fields)


def gathered(packs: Iterable[Pack]) -> RecordArrays:
    """Return the fields of the records in packs."""
    found = _Gathered()
    for pack in packs:
        found.add(pack)
    return found.arrays()


def record_arrays(records: RecordArrays | pd.DataFrame | Iterable[Record]) -> RecordArrays:
    """Return the fields of records; a frame has the columns of `records_frame`.

    Raises:
        ReportError: the frame lacks a column.
    """
    if isinstance(records, RecordArrays):
        return records
    return _of_frame(records) if isinstance(records, pd.DataFrame) else gathered(packs_of(records))


def joined_arrays(parts: Sequence[RecordArrays]) -> RecordArrays:
    """Return the records of all parts, in order."""
    columns = zip(*parts, strict=True)
    return parts[0] if len(parts) == 1 else RecordArrays._make(map(_concatenated, columns))


class _Gathered:
    """Columns of records, which grow; what the records of a kind share is stored once for each."""

    def __init__(self) -> None:
        texts = (*TEXTS, "unit")
        self._names: dict[str, dict[str | None, int]] = {name: {None: _ABSENT} for name in texts}
        self._kinds = {name: array("q") for name in (*texts, *_SHARED)}
        self._kind, self._line, self._step, self._rank = (array("q") for _ in range(4))
        self._value = array("d")

    def add(self, pack: Pack) -> None:
        """Add the records of a pack."""
        first = len(self._kinds["run"])
        for name, known in self._names.items():
            # An absent text has the number -1.
            self._kinds[name].extend(
                [known.setdefault(getattr(kind, name), len(known) - 1) for kind in pack.kinds]
            )
        for name in _SHARED:
            self._kinds[name].extend(_numbers([getattr(kind, name) for kind in pack.kinds]))
        self._kind.extend([first + kind for kind in pack.kind])
        self._line.extend(pack.line)
        self._step.extend(_numbers(pack.step))
        self._rank.extend(_numbers(pack.rank))
        self._value.extend(pack.value)

    def arrays(self) -> RecordArrays:
        """Return the columns."""
        kind = _ints(self._kind)
        shared = {name: _ints(numbers) for name, numbers in self._kinds.items()}
        columns: dict[str, Any] = {}
        for name, known in self._names.items():
            names = [text for text in known if text is not None]
            columns[name] = TextCodes(shared[name][kind], names)
        columns |= {name: shared[name][kind] for name in _SHARED}
        own = {"line": self._line, "step": self._step, "rank": self._rank}
        columns |= {name: _ints(numbers) for name, numbers in own.items()}
        return RecordArrays(**columns, value=np.frombuffer(self._value, dtype=np.float64))


def _known(number: int) -> int | None:
    return None if number == NONE else number


def _numbers(numbers: Iterable[int | None]) -> list[int]:
    return [NONE if number is None else number for number in numbers]


def _ints(numbers: array[int]) -> Ints:
    return np.frombuffer(numbers, dtype=np.int64)


def _concatenated(columns: Sequence[Any]) -> Any:
    if not isinstance(columns[0], TextCodes):
        return np.concatenate(columns)
    names = list(dict.fromkeys(name for column in columns for name in column.names))
    return TextCodes(np.concatenate([column.among(names) for column in columns]), names)


def _of_frame(frame: pd.DataFrame) -> RecordArrays:
    needed = (*TEXTS, *WHOLE, "value")
    lacking = [name for name in needed if name not in frame]
    if lacking:
        raise ReportError(
            f"these records have no column {lacking[0]}; they need {', '.join(needed)}"
        )
    columns: dict[str, Any] = {name: _text(frame[name]) for name in TEXTS}
    # A CSV file does not distinguish a missing value and an empty text.
    variants: TextCodes = columns["variant"].led_by([""])
    columns["variant"] = variants._replace(codes=np.maximum(variants.codes, 0))
    sizes = frame["message_size"] if "message_size" in frame else pd.Series([pd.NA] * len(frame))
    columns |= {name: _whole(frame[name]) for name in WHOLE}
    columns |= {"unit": _units(columns["metric"]), "message_size": _whole(sizes)}
    return RecordArrays(**columns, value=frame["value"].to_numpy(dtype=np.float64))


def _units(metric: TextCodes) -> TextCodes:
    units = [UNITS.get(name, "1") for name in metric.names]
    names = list(dict.fromkeys(units))
    codes = np.array([*map(names.index, units), _ABSENT], dtype=np.int64)
    return TextCodes(codes[metric.codes], names)


def _text(values: pd.Series[Any]) -> TextCodes:
    if isinstance(values.dtype, pd.CategoricalDtype):
        return TextCodes(values.cat.codes.to_numpy(), values.cat.categories.tolist())
    codes, names = pd.factorize(np.asarray(values, dtype=object))
    return TextCodes(codes, names.tolist())


def _whole(values: pd.Series[Any]) -> Ints:
    if values.hasnans:
        # Small unsigned types cannot hold the number of an absent text.
        return values.astype("Int64").fillna(NONE).to_numpy(dtype=np.int64)
    return values.to_numpy(dtype=np.int64)


def codes(columns: Sequence[pd.Series[float]]) -> Ints:
    """Number the different rows in order of appearance; NA counts as a value."""
    return _numbered([pd.factorize(column)[0] for column in columns], sort=False)


def packed(*keys: NDArray[Any]) -> Ints:
    """Return one number for each combination of keys, in the sort order of the keys."""
    return _numbered(keys, sort=True)


def firsts(code: Ints) -> Ints:
    """Return the first place of each number of `codes`, which are numbered in their order."""
    return np.unique(code, return_index=True)[1]


def _numbered(keys: Sequence[NDArray[Any]], *, sort: bool) -> Ints:
    rows = pd.DataFrame(dict(enumerate(keys)))
    number: Ints = rows.groupby(list(rows), sort=sort).ngroup().to_numpy(dtype=np.int64)
    return number


WHOLE_RUN = ("world_size", "global_batch_size", "condition", "seed")
_IDENTITY = ("run", "parser", "metric", "variant")


def run_level_records(
    fields: RecordArrays, metrics: Sequence[str] = WHOLE_RUN
) -> tuple[Record, ...]:
    """Return the records of these metrics and of networks, without repetitions."""
    chosen = (fields.metric.among(metrics) >= 0) | (fields.parser.among(["perftest"]) >= 0)
    few = fields.take(np.flatnonzero(chosen))
    texts = {name: getattr(few, name).codes for name in _IDENTITY}
    rows = pd.DataFrame({**texts, "value": few.value, "message_size": few.message_size})
    return tuple(few.take(np.flatnonzero(~rows.duplicated())).records())


def metrics_of(fields: RecordArrays) -> dict[str, set[str]]:
    """Return the runs with a measurement in order of appearance, each with its metrics."""
    own = fields.take(np.flatnonzero(fields.metric.among(["condition"]) < 0))
    run, metric = own.run.codes, own.metric.codes
    _, first = np.unique(packed(run, metric), return_index=True)
    found: dict[str, set[str]] = {}
    for place in np.sort(first).tolist():
        found.setdefault(own.run.names[run[place]], set()).add(own.metric.names[metric[place]])
    return found


def most_steps(fields: RecordArrays, metrics: Iterable[str]) -> int:
    """Return the steps from the first to the last measured one of the longest run."""
    own = fields.take(np.flatnonzero((fields.metric.among(metrics) >= 0) & (fields.step != NONE)))
    steps = pd.Series(own.step).groupby(own.run.codes)
    return int((steps.max() - steps.min() + 1).max()) if len(own.step) else 0


def highest_ranks(fields: RecordArrays) -> dict[str, int]:
    """Return the highest rank that the records of each run name."""
    ranks = pd.Series(fields.rank).groupby(fields.run.codes).max()
    return {fields.run.names[int(run)]: int(rank) for run, rank in ranks.items() if rank >= 0}


def parsers_of(fields: RecordArrays) -> Counter[str]:
    """Return the number of records of each parser."""
    codes, counts = np.unique(fields.parser.codes, return_counts=True)
    names = [fields.parser.names[code] for code in codes.tolist()]
    return Counter(dict(zip(names, counts.tolist(), strict=True)))


def has_step_times(fields: RecordArrays) -> bool:
    """Whether a program printed step times; those that a table states are of whole runs."""
    printed = (fields.metric.among(["step_time"]) == 0) & (fields.parser.among(["table"]) < 0)
    return bool(printed.any())


def first_of_parser(fields: RecordArrays, parser: str) -> tuple[Record, int] | None:
    """Return the first record of a parser and the number of runs with records of it, if any."""
    own = fields.take(np.flatnonzero(fields.parser.among([parser]) == 0))
    if not len(own.value):
        return None
    first = next(iter(own.take(np.arange(1)).records()))
    return first, len(np.unique(own.run.codes))


def _unknown_rates(fields: RecordArrays) -> Mask:
    """Which records are rates of the job or of a rank: the line does not say which."""
    plain = fields.variant.among([""]) == 0
    found: Mask = plain & (fields.scope.among(["unknown"]) == 0)
    return found & (fields.metric.among(RATE_RECORDS) >= 0)


def rate_questions(fields: RecordArrays) -> dict[str, str]:
    """Return for each run with such a rate the last one, and what is not known of it."""
    own = fields.take(np.flatnonzero(_unknown_rates(fields)))
    return {
        one.run: f"{one.value:{'.0f' if one.value > 1e3 else '.4g'}} "
        f"{one.metric.partition('_')[0]}/s: {OF_WHICH}"
        for one in own.records()
    }


def with_rates(fields: RecordArrays, of: Literal["job", "rank"]) -> RecordArrays:
    """Return the records; such rates are those of the job, or of the rank with one GPU."""
    scope = "global" if of == "job" else "per_gpu"
    names = [*fields.scope.names, scope]
    codes = np.where(_unknown_rates(fields), len(names) - 1, fields.scope.codes)
    return fields._replace(scope=TextCodes(codes, names))


def of_last_job(
    fields: RecordArrays, starts: Mapping[str, Sequence[int]]
) -> tuple[RecordArrays, list[str]]:
    """Return the records without those of earlier jobs in a log, and where the last one begins.

    `starts` are lines of each source by which a job may begin. One that continues the steps before
    it is the same job again.
    """
    dropped, places = np.zeros(len(fields.value), dtype=bool), []
    plain = (fields.step != NONE) & (fields.metric.among(("epoch_time", "accuracy")) < 0)
    for source, lines in starts.items():
        of_source = fields.source.among([source]) == 0
        own = np.flatnonzero(of_source & plain)
        for line in sorted(lines, reverse=True):
            above = fields.line[own] < line
            before, after = fields.step[own][above], fields.step[own][~above]
            # Ranks begin one after another.
            if len(after) and len(np.unique(before)) > 1 and after.min() <= before.min():
                late = of_source & (fields.line >= line)
                again = np.isin(fields.metric.codes, fields.metric.codes[late])
                dropped |= of_source & ~late & (again | (fields.step != NONE))
                places.append(f"{source}:{line}")
                break
    return fields.take(np.flatnonzero(~dropped)), places
