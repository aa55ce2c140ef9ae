"""The records of runs as a frame, what it says of runs as a whole, and reductions by group.

The frame has a row for each record and a column for each field of `Record`: texts are categories,
and `step`, `rank` and `message_size` are NaN where the line names none.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import wraps
from typing import Any, Literal, NamedTuple, TypeVar, cast

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from hpc_train.base.metrics import RATE_RECORDS
from hpc_train.logs.record import RESULTS, Pack, Record, packs_of
from hpc_train.runs.expected_runs import OF_EACH_RANK

Marks = pd.Series  # of bool, with the index of the frame that they choose from
TEXTS = ("run", "source", "parser", "metric", "scope", "node", "variant")
WHOLE = ("line", "step", "rank", "steps")
_NUMBERS = ("step", "rank", "message_size")


def gathered(packs: Iterable[Pack]) -> pd.DataFrame:
    """Return the records in packs as one frame; what the records of a kind share is stored once."""
    kinds: list[Record] = []
    kind, line = array("q"), array("q")
    step, rank, value = array("d"), array("d"), array("d")
    for pack in packs:
        kind.extend(len(kinds) + one for one in pack.kind)
        kinds += pack.kinds
        line.extend(pack.line)
        value.extend(pack.value)
        for numbers, column in ((pack.step, step), (pack.rank, rank)):
            column.extend(np.nan if number is None else number for number in numbers)
    places = np.asarray(kind, dtype=np.intp)
    columns: dict[str, Any] = {
        name: _category([getattr(one, name) for one in kinds], places) for name in (*TEXTS, "unit")
    }
    for name, of_kind in (("steps", np.int64), ("message_size", np.float64)):
        columns[name] = np.array([getattr(one, name) for one in kinds], dtype=of_kind)[places]
    own = {"line": line, "step": step, "rank": rank, "value": value}
    columns |= {name: np.asarray(column) for name, column in own.items()}
    return pd.DataFrame({name: columns[name] for name in Record.__struct_fields__})


def _category(values: Sequence[str | None], places: NDArray[np.intp]) -> pd.Categorical:
    numbers, names = pd.factorize(np.array(values, dtype=object), sort=True)
    return pd.Categorical.from_codes(numbers[places], pd.Index(names, dtype=object))


def record_arrays(records: pd.DataFrame | Iterable[Record]) -> pd.DataFrame:
    """Return the frame of records; a frame is one already."""
    return records if isinstance(records, pd.DataFrame) else gathered(packs_of(records))


def joined_arrays(parts: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """Return the records of all parts, in order."""
    if len(parts) == 1:
        return parts[0]
    texts = (*TEXTS, "unit")
    plain = [part.astype(dict.fromkeys(texts, object)) for part in parts if len(part)]
    whole = pd.concat(plain, ignore_index=True) if plain else parts[0]
    return whole.astype(dict.fromkeys(texts, "category"))


def records_in(frame: pd.DataFrame) -> Iterator[Record]:
    """Yield the records as objects, which need twenty times the memory."""
    if frame.empty:
        return
    for row in frame.astype(object).where(frame.notna(), None).to_dict("records"):
        whole = {name: int(row[name]) for name in _NUMBERS if row[name] is not None}
        yield Record(**{str(name): cell for name, cell in row.items()} | whole)


def of_metric(frame: pd.DataFrame, *metrics: str) -> pd.DataFrame:
    """Return the records of these metrics."""
    return frame[frame["metric"].isin(metrics)]


WHOLE_RUN = ("world_size", "global_batch_size", "condition", "seed")


def run_level_records(
    records: pd.DataFrame, metrics: Sequence[str] = WHOLE_RUN
) -> tuple[Record, ...]:
    """Return the records of these metrics and of networks, without repetitions."""
    few = records[records["metric"].isin(metrics) | (records["parser"] == "perftest")]
    identity = ["run", "parser", "metric", "variant", "value", "message_size"]
    return tuple(records_in(few[~few.duplicated(identity)]))


def metrics_of(records: pd.DataFrame) -> dict[str, set[str]]:
    """Return the runs with a measurement in order of appearance, each with its metrics."""
    pairs = records.loc[records["metric"] != "condition", ["run", "metric"]].drop_duplicates()
    found: dict[str, set[str]] = {}
    for run, metric in pairs.itertuples(index=False):
        found.setdefault(run, set()).add(metric)
    return found


def _unknown_rates(records: pd.DataFrame) -> Marks:
    """Which records are rates of the job or of a rank: the line does not say which."""
    plain = (records["variant"] == "") & (records["scope"] == "unknown")
    return plain & records["metric"].isin(RATE_RECORDS)


def with_rates(
    records: pd.DataFrame, of: Literal["job", "rank"] | None
) -> tuple[pd.DataFrame, str]:
    """Return the records; such rates are those of the job, or of the rank with one GPU.

    Without `of`, those of runs with no other result are assumed to be of the job; the text says so.
    """
    unknown, scope = _unknown_rates(records), records["scope"].astype(object)
    if of is None:
        results = records["metric"].isin(RESULTS)
        known = records.loc[results & (scope != "unknown"), "run"].unique()
        unknown &= ~records["run"].isin(known)
    scope = scope.mask(unknown, "per_gpu" if of == "rank" else "global")
    is_assumed = of is None and bool(unknown.any())
    said = f"reading printed rates as those of the whole job; {OF_EACH_RANK}" * is_assumed
    return records.assign(scope=scope.astype("category")), said


def of_last_job(
    records: pd.DataFrame, starts: Mapping[str, Sequence[int]]
) -> tuple[pd.DataFrame, list[str]]:
    """Return the records without those of earlier jobs in a log, and where the last one begins.

    `starts` are lines of each source by which a job may begin. One that continues the steps before
    it is the same job again.
    """
    dropped, places = pd.Series(False, index=records.index), []
    for source, lines in starts.items():
        own = records[records["source"] == source]
        plain = own[own["step"].notna() & ~own["metric"].isin(("epoch_time", "accuracy"))]
        for line in sorted(lines, reverse=True):
            above = plain["line"] < line
            before, after = plain.loc[above, "step"], plain.loc[~above, "step"]
            # Ranks begin one after another.
            if len(after) and before.nunique() > 1 and after.min() <= before.min():
                late = own["line"] >= line
                again = own["metric"].isin(own.loc[late, "metric"].unique())
                dropped[own.index[~late & (again | own["step"].notna())]] = True
                places.append(f"{source}:{line}")
                break
    return records[~dropped].reset_index(drop=True), places


# A product or a ratio of any two, and the square of a sum, are still numbers.
LEAST, MOST = 1e-100, 1e100
Formula = TypeVar("Formula", bound=Callable[..., Any])


def usable(values: Any) -> Any:
    """Return which values are usable: finite, and within the range of measurements."""
    sizes = np.abs(values)
    return (sizes == 0) | ((sizes >= LEAST) & (sizes <= MOST))


def known(values: Any) -> Any:
    """Return the values, a Series as such, with NaN for those that are not usable."""
    sound = usable(values)
    if isinstance(values, pd.Series):
        return values.where(sound)
    return np.where(sound, values, np.nan)


def positive(rates: Floats) -> Floats:
    """Return the rates, with NaN for those that are not usable or not above 0."""
    return np.where((rates > 0) & usable(rates), rates, NAN)


def first_known(*columns: Any) -> Floats:
    """Return for each element the first value that is not NaN."""
    found = np.asarray(columns[0], dtype=np.float64)
    for other in columns[1:]:
        found = np.where(np.isnan(found), other, found)
    return found


def bounded(formula: Formula) -> Formula:
    """Return a formula whose result is NaN, without a warning, outside the range of measurements.

    NaN means unknown: a missing value in a report, never a wrong number.
    """

    @wraps(formula)
    def quiet(*values: Any, **named: Any) -> Any:
        with np.errstate(all="ignore"):
            found = known(formula(*values, **named))
        return found if found.ndim else float(found)

    return cast("Formula", quiet)


Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]
NAN = float("nan")
# Computed batches and rates agree to fewer digits than counted ones.
SAME = 1e-6


class Moments(NamedTuple):
    """Per group: the number of values, their mean and their variance (n - 1); NaN without."""

    number: Floats
    mean: Floats
    variance: Floats

    def of(self, groups: Ints) -> Moments:
        """Return the values of some groups, in that order; NaN for -1."""
        absent = groups < 0
        if not len(self.number):
            return Moments(*(np.full(len(groups), fill) for fill in (0.0, NAN, NAN)))
        count, mean, variance = (column[groups] for column in self)
        return Moments(
            np.where(absent, 0.0, count),
            np.where(absent, NAN, mean),
            np.where(absent, NAN, variance),
        )


def moments(values: Floats, groups: Ints, size: int) -> Moments:
    """Return the moments of the values that are not NaN.

    Deviations are squared, never the values.
    """
    places = np.flatnonzero(~np.isnan(values))
    values, groups = values[places], groups[places]
    if not len(values):
        return Moments(np.zeros(size), np.full(size, NAN), np.full(size, NAN))
    count = np.bincount(groups, minlength=size).astype(np.float64)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        mean = np.bincount(groups, values, size) / count
        mean += np.bincount(groups, values - mean[groups], size) / count
        squares = np.bincount(groups, (values - mean[groups]) ** 2, size)
        return Moments(count, mean, np.where(count > 1, squares / (count - 1), NAN))


def over(how: Literal["min", "max", "sum"], values: Floats, groups: Ints, size: int) -> Floats:
    """Return the smallest, largest or sum of the known values of each group, NaN without."""
    known, found = ~np.isnan(values), np.full(size, NAN)
    if how == "sum":
        found[groups[known]] = 0.0
        np.add.at(found, groups[known], values[known])
    else:
        (np.fmin if how == "min" else np.fmax).at(found, groups, values)
    return found


def agree(low: Floats, high: Floats) -> Mask:
    """Whether the smallest and the largest value of a group are equal."""
    return high - low <= SAME * np.abs(high)


def numbers(frame: pd.DataFrame, name: str) -> Floats:
    """Return a column as floats; NaN for missing values, or if there is no such column."""
    if name not in frame:
        return np.full(len(frame), NAN)
    column = frame[name]
    if column.dtype == np.float64:
        return column.to_numpy(copy=True)
    return column.to_numpy(dtype=np.float64, na_value=NAN)


def levels_of(values: Floats, near: float) -> Ints:
    """Number the different values, smallest first; -1 for NaN.

    Values within `near` of the smallest of their level are the same.
    """
    known = ~np.isnan(values)
    found, place = np.unique(values[known], return_inverse=True)
    level, number, start = np.zeros(len(found), dtype=np.int64), -1, 0.0
    for index, value in enumerate(found.tolist()):
        if number < 0 or value > start + near * abs(start):
            number, start = number + 1, value
        level[index] = number
    code = np.full(len(values), -1, dtype=np.int64)
    code[known] = level[place]
    return code


def filled(code: Ints, *groups: Ints) -> Ints:
    """Replace a missing level (-1) by the most frequent one of its first group, else the next."""
    for group in groups:
        pairs = pd.DataFrame({"group": group, "code": code})
        known = pairs[code >= 0].value_counts().reset_index(name="n")
        # Of several, the first one.
        known = known.sort_values(["n", "code"], ascending=[False, True]).drop_duplicates("group")
        best = pairs["group"].map(known.set_index("group")["code"]).fillna(-1)
        code = np.where(code < 0, best, code).astype(np.int64)
    return code


def codes(columns: Sequence[pd.Series[Any]]) -> Ints:
    """Number the different rows in order of appearance; NA counts as a value."""
    found = np.zeros(len(columns[0]), dtype=np.int64)
    for column in columns:
        code, values = pd.factorize(column)
        found = pd.factorize(found * (len(values) + 1) + code)[0].astype(np.int64)
    return found
