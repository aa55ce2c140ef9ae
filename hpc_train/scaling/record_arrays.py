"""The records of runs as a frame, and what it says of runs as a whole.

The frame has a row for each record and a column for each field of `Record`: texts are categories,
and `step`, `rank` and `message_size` are NaN where the line names none.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from hpc_train.base.errors import ReportError
from hpc_train.base.metrics import RATE_RECORDS, UNITS
from hpc_train.logs.record import Pack, Record, packs_of
from hpc_train.runs.expected_runs import OF_WHICH

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
    """Return the frame of records; another frame has the columns of `records_frame`.

    Raises:
        ReportError: the frame lacks a column.
    """
    if not isinstance(records, pd.DataFrame):
        return gathered(packs_of(records))
    needed = (*TEXTS, *WHOLE, "value")
    lacking = [name for name in needed if name not in records]
    if lacking:
        raise ReportError(
            f"these records have no column {lacking[0]}; they need {', '.join(needed)}"
        )
    texts = records[list(TEXTS)].astype("category")
    # A CSV file does not distinguish a missing value and an empty text.
    variant = texts["variant"].astype(object).fillna("").astype("category")
    unit = texts["metric"].map({name: UNITS.get(name, "1") for name in texts["metric"].unique()})
    sizes = records["message_size"] if "message_size" in records else float("nan")
    found = records.assign(**texts, unit=unit.astype("category"), message_size=sizes)
    found = found.assign(variant=variant)[list(Record.__struct_fields__)].reset_index(drop=True)
    kinds = dict.fromkeys((*_NUMBERS, "value"), "float64") | dict.fromkeys(
        ("line", "steps"), "int64"
    )
    return found.astype(kinds)


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


def most_steps(records: pd.DataFrame, metrics: Collection[str]) -> int:
    """Return the steps from the first to the last measured one of the longest run."""
    steps = of_metric(records, *metrics).dropna(subset="step").groupby("run", observed=True)["step"]
    return int((steps.max() - steps.min() + 1).max()) if steps.ngroups else 0


def highest_ranks(records: pd.DataFrame) -> dict[str, int]:
    """Return the highest rank that the records of each run name."""
    ranks = records.groupby("run", observed=True)["rank"].max().dropna()
    return {str(run): int(rank) for run, rank in ranks.items()}


def parsers_of(records: pd.DataFrame) -> Counter[str]:
    """Return the number of records of each parser."""
    counts = records["parser"].astype(object).value_counts()
    return Counter({str(name): int(count) for name, count in counts.items()})


def has_step_times(records: pd.DataFrame) -> bool:
    """Whether a program printed step times; those that a table states are of whole runs."""
    return bool(((records["metric"] == "step_time") & (records["parser"] != "table")).any())


def first_of_parser(records: pd.DataFrame, parser: str) -> tuple[Record, int] | None:
    """Return the first record of a parser and the number of runs with records of it, if any."""
    own = records[records["parser"] == parser]
    return None if own.empty else (next(records_in(own[:1])), own["run"].nunique())


def _unknown_rates(records: pd.DataFrame) -> Marks:
    """Which records are rates of the job or of a rank: the line does not say which."""
    plain = (records["variant"] == "") & (records["scope"] == "unknown")
    return plain & records["metric"].isin(RATE_RECORDS)


def rate_questions(records: pd.DataFrame) -> dict[str, str]:
    """Return for each run with such a rate the last one, and what is not known of it."""
    return {
        one.run: f"{one.value:{'.0f' if one.value > 1e3 else '.4g'}} "
        f"{one.metric.partition('_')[0]}/s: {OF_WHICH}"
        for one in records_in(records[_unknown_rates(records)])
    }


def with_rates(records: pd.DataFrame, of: Literal["job", "rank"]) -> pd.DataFrame:
    """Return the records; such rates are those of the job, or of the rank with one GPU."""
    scope = records["scope"].astype(object)
    scope = scope.mask(_unknown_rates(records), "global" if of == "job" else "per_gpu")
    return records.assign(scope=scope.astype("category"))


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
