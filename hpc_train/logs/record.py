"""Record: one measurement, with unit, scope and source; Pack: records as columns; their files."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Container, Iterable, Iterator, Sequence
from itertools import groupby, islice
from operator import attrgetter
from pathlib import Path
from typing import Any, Literal, NamedTuple

import msgspec

from hpc_train.base import metrics
from hpc_train.base.decode import load_data
from hpc_train.base.errors import LogParseError, newer_version
from hpc_train.base.files import is_regular, open_regular
from hpc_train.base.metrics import UNITS
from hpc_train.base.values import Value
from hpc_train.jobs.log_selection import StatedScope

Scope = Literal[StatedScope, "unknown"]

# Records of a pack: large enough for compression and for the comparison of neighbouring values, and
# small enough that records are yielded while a log is read.
LOT = 2048
_OWN = frozenset({"line", "value", "step", "rank"})
_file = attrgetter("run", "source")


class Record(Value, frozen=True, kw_only=True, gc=False):
    """One value of one metric from one line of a log.

    `accuracy` and `mfu` are fractions, 0 to 1. `step` counts from 1 within the run. `rank` is the
    global rank that printed the line, None when the line does not say. `steps` is the number of
    steps that the value is the mean of: a line of a log that reports every tenth step has 10.
    `variant` distinguishes two values of one metric on one line (`out_of_place`, `in_place`), and
    `message_size` [B] is the message size of a bandwidth or latency. The metric `not_finite` counts
    a value that is NaN or infinite: `variant` is `loss`. The metric `condition` is a condition of
    the run: `variant` is `torch=2.13.0`.
    """

    run: str
    source: str
    line: int
    parser: str
    metric: str
    value: float
    unit: str
    scope: Scope
    step: int | None = None
    rank: int | None = None
    node: str | None = None
    steps: int = 1
    message_size: int | None = None
    variant: str = ""


class Pack(msgspec.Struct, array_like=True):
    """Some records of one file as columns, the form in which they are checked, stored and counted.

    Fields that many records share are stored once: `kinds`, so a record takes a row of five cells.
    `once`: the keys `once` of the records that have one, by position.
    """

    kinds: list[Record]
    kind: Sequence[int]
    line: Sequence[int]
    value: Sequence[float]
    step: Sequence[int | None]
    rank: Sequence[int | None]
    once: dict[int, str]

    def __len__(self) -> int:
        """Return the number of records."""
        return len(self.kind)

    def records(self) -> Iterator[Record]:
        """Yield the records."""
        replace, kinds = msgspec.structs.replace, self.kinds
        rows = zip(self.kind, self.line, self.value, self.step, self.rank, strict=True)
        for kind, line, value, step, rank in rows:
            yield replace(kinds[kind], line=line, value=value, step=step, rank=rank)

    def without(self, places: Container[int]) -> Pack:
        """Return the pack without the records at these positions."""
        kept = [place for place in range(len(self)) if place not in places]
        new = {old: new for new, old in enumerate(kept)} if self.once else {}
        keys = {new[old]: key for old, key in self.once.items() if old in new}
        columns = (self.kind, self.line, self.value, self.step, self.rank)
        kept_of = ([column[place] for place in kept] for column in columns)
        return Pack(self.kinds, *kept_of, keys)  # type: ignore[call-arg, arg-type]


_common = attrgetter(*(name for name in Record.__struct_fields__ if name not in _OWN))


def packs_of(records: Iterable[Record]) -> Iterator[Pack]:
    """Yield records as packs, each of one file."""
    for _, of_file in groupby(records, _file):
        while lot := list(islice(of_file, LOT)):
            numbers: dict[Any, int] = {}
            kind = [numbers.setdefault(_common(one), len(numbers)) for one in lot]
            first = {number: one for number, one in zip(reversed(kind), reversed(lot), strict=True)}
            yield Pack(
                [first[number] for number in range(len(numbers))],
                kind,
                [one.line for one in lot],
                [one.value for one in lot],
                [one.step for one in lot],
                [one.rank for one in lot],
                {},
            )


SIZES = ("nodes", "gpus_per_node", "tasks_per_node", "cpus_per_task", "gpus", "ranks")
BATCH = "global_batch_size"
# One of these suffices for a row of a speedup table.
RESULTS = tuple(metric.record for metric in metrics.RESULTS)
# Rates per GPU of published tables; multiplied by the number of GPUs (or ranks).
RATES_PER_GPU = {f"{name}_per_gpu": name for name in metrics.RATE_RECORDS}
PER_GPU = RATES_PER_GPU | {f"{name}_per_gpu": name for name in ("tflops", "power", "energy")}
MEASURES = tuple(
    dict.fromkeys((
        *RESULTS, *PER_GPU, *(metric.record for metric in metrics.METRICS if metric.record)
    ))
)  # fmt: skip
OF_RUN = ("run", "state", "exit_code", "problem", "exclude", "restarts", "wall_s")
KNOWN = (*SIZES, *MEASURES, *OF_RUN)


class _Headings(Value, frozen=True, kw_only=True):
    schema: Literal[1]
    conditions: frozenset[str]
    unused: frozenset[str]
    counts: tuple[str, ...]
    extremes: frozenset[str]
    spreads: frozenset[str]
    assumed: dict[str, tuple[str, str]]
    unambiguous: dict[str, tuple[str, ...]]
    rates_of_steps: frozenset[str]
    factors: dict[str, dict[str, float]]
    times: dict[str, str]
    aliases: dict[str, tuple[str, ...]]
    states: dict[str, tuple[str, ...]]


def headings() -> _Headings:
    """Return the names of columns that come with the package; the file describes the keys."""
    return load_data("headings.yaml", _Headings)


_NAMES = headings()
CONDITIONS, UNUSED, COUNTS = _NAMES.conditions, _NAMES.unused, _NAMES.counts
ASSUMED, UNAMBIGUOUS, FACTORS = _NAMES.assumed, _NAMES.unambiguous, _NAMES.factors
ColumnKind = Literal["size", "measure", "condition", "axis", "unused", "run", "spread", "count"]
_KINDS: dict[str, ColumnKind] = {
    **dict.fromkeys(("", *UNUSED), "unused"),
    **dict.fromkeys(CONDITIONS, "condition"),
    **dict.fromkeys(OF_RUN, "run"),
    **dict.fromkeys(MEASURES, "measure"),
    **dict.fromkeys(SIZES, "size"),
}
EXTREMES, SPREADS = _NAMES.extremes, _NAMES.spreads
STATES = _NAMES.states
RATES_OF_STEPS = _NAMES.rates_of_steps
_ALIASES = {alias: name for name, several in _NAMES.aliases.items() for alias in several}
# A name this similar to a known one is a typing error, not an axis.
_NEAR = 0.85


class Stated(Value, frozen=True, kw_only=True):
    """Values stated for one run; `exclude` is the reason why it is excluded."""

    sizes: dict[str, int] = {}
    global_batch: float | None = None
    axes: dict[str, Any] = {}
    conditions: dict[str, str] = {}
    exclude: str = ""


def kind_of(name: str) -> ColumnKind:
    """Return what a column or a key of this name states; an unknown name is an axis."""
    return _KINDS.get(name, "axis")


def misspelt(name: str, known: tuple[str, ...]) -> str:
    """Return the known name that a misspelt one is similar to, or an empty text."""
    import difflib

    if name in known or name in CONDITIONS or name in UNUSED:
        return ""
    return next(iter(difflib.get_close_matches(name, known, n=1, cutoff=_NEAR)), "")


def complete_sizes(given: dict[str, int]) -> dict[str, int]:
    """Return nodes, GPUs and tasks per node, and ranks, as far as they can be derived.

    `gpus` is the total number. By default there is one task per GPU.

    Raises:
        ValueError: the numbers contradict one another; the text says how.
    """
    sizes = {name: given[name] for name in SIZES if name in given}
    gpus = sizes.pop("gpus", None)
    _divide(sizes, "gpus_per_node", "gpus", gpus)
    if "tasks_per_node" not in sizes and "ranks" not in sizes and sizes.get("gpus_per_node"):
        sizes["tasks_per_node"] = sizes["gpus_per_node"]
    _divide(sizes, "tasks_per_node", "ranks", sizes.get("ranks"))
    _divide(sizes, "gpus_per_node", "gpus", gpus)
    if "nodes" in sizes and "tasks_per_node" in sizes:
        sizes["ranks"] = sizes["nodes"] * sizes["tasks_per_node"]
    if gpus and "nodes" not in sizes:
        sizes = {"ranks": gpus, **sizes, "gpus": gpus}
    return sizes


def _divide(sizes: dict[str, int], each: str, word: str, total: int | None) -> None:
    """Find the third of nodes, number per node and number of all; check all three."""
    nodes, per_node = sizes.get("nodes"), sizes.get(each)
    if total is None or (nodes is None and not per_node):
        return
    if nodes is not None and per_node is not None and nodes * per_node != total:
        raise ValueError(f"{word} {total} is not nodes {nodes} x {each} {per_node}")
    name, known = ("nodes", per_node) if nodes is None else (each, nodes)
    if known and total % known:
        raise ValueError(
            f"{word} {total} is not a multiple of {each if nodes is None else 'nodes'} {known}"
        )
    sizes[name] = total // known if known else 0


FRACTIONS = ("accuracy", "mfu")
_UNITS_OF_RUN = {"wall_s": "s"}
_BRACKETS = re.compile(r"^([^\[(]+)[\[(]([^\])]*)[\])]?\s*")
_ITEMS = {
    "samples": ("samples", "images", "imgs", "img", "sequences", "seqs", "seq"),
    "tokens": ("tokens", "toks", "tok"),
}
_EACH = re.compile(rf"^(?P<unit>{'|'.join(FACTORS['s'])})_per_(?P<each>[a-z]+)")
_RATE = re.compile(r"^(?P<item>[a-z]+)_per_(?:s|sec|second)(?P<each>(?:_per_gpu)?)")
_MEAN = re.compile(r"^(?:avg|average|mean|median)_|_(?:avg|average|mean|median)$")


class Heading(NamedTuple):
    """A name, and the factor that converts its numbers to hpctrain's unit.

    `unit` is the unit in the heading, if it differs.
    """

    name: str
    factor: float = 1.0
    unit: str = ""


def heading(text: str) -> Heading:
    """Return the meaning of a heading: `Step time [ms]` is `step_time` in ms, `img/s` a rate.

    A heading with an unknown unit is not changed.
    """
    text = text.strip()
    found = _BRACKETS.fullmatch(text)
    if not found:
        return _with_ending(_word(text))
    head, unit = _word(found[1]), found[2].strip()
    for name in _joined(head, _word(unit)):
        if name in KNOWN:
            return Heading(name)
    if _word(unit) in RATES_OF_STEPS:
        return Heading(_word(unit))
    if not unit:
        return Heading(head)
    if unit.lower() == UNITS.get(_measure(head), "").lower():
        return Heading(head)
    return _in_unit(head, unit) or Heading(text)


def plain_name(text: str) -> str:
    """Return the name of a heading."""
    return heading(text).name


def _joined(head: str, more: str) -> Iterator[str]:
    """Yield the possible names of `Throughput (img/s)` or `GPUs (per node)`."""
    yield _word(f"{head}_{more}")
    yield _word(f"{more}_{head}")
    if head in ASSUMED and more in MEASURES:
        yield more
    if more in ("total", "all", "global", "overall"):
        yield head


def _with_ending(word: str) -> Heading:
    each = _EACH.fullmatch(word)
    head, _, unit = (each["each"], "", each["unit"]) if each else word.rpartition("_")
    return (word not in KNOWN and _in_unit(_ALIASES.get(head, head), unit)) or Heading(word)


def _in_unit(head: str, unit: str) -> Heading | None:
    head = _NAMES.times.get(_MEAN.sub("", head), head)
    measure = _measure(head)
    ours = "fraction" if head in FRACTIONS else UNITS.get(measure, _UNITS_OF_RUN.get(head, ""))
    factor = FACTORS.get(ours, {}).get(unit.lower())
    if factor is None or measure not in KNOWN:
        return None
    return Heading(head, factor, "" if factor == 1 else unit)


def _measure(head: str) -> str:
    name, _ = ASSUMED.get(head, (head, ""))
    return PER_GPU.get(name, name)


def _word(text: str) -> str:
    text = text.strip(" ?:").lower().replace("/", " per ").replace("#", " num ").replace("-", " ")
    word = "_".join(text.replace("_", " ").replace(". ", " ").split())
    word = re.sub(r"^(?:no|nr)_of_", "number_of_", word)
    names = [_ALIASES.get(one, one) for one in map(_rate, (word, _MEAN.sub("", word)))]
    return next((one for one in reversed(names) if one in KNOWN or one in ASSUMED), names[0])


def _rate(word: str) -> str:
    """Return the name of a rate in one spelling: `img_per_sec` is `samples_per_second`."""
    if not (rate := _RATE.fullmatch(word)):
        return word
    item = next((ours for ours, all_ in _ITEMS.items() if rate["item"] in all_), rate["item"])
    return f"{item}_per_second{rate['each']}"


SCHEMA = 1
_FIRST = 64 * 1024
# Limit of a line: a file without line ends that is not a record file would be read as one line.
_LONGEST = 1 << 20
_NEEDED = ("run", "source", "line", "parser", "metric", "value")
_FIELDS = frozenset(Record.__struct_fields__)
_NULLABLE = ("step", "rank", "node", "message_size")
_AGAIN = "write it again: hpctrain collect LOG… -o FILE"


def is_record_file(path: Path) -> bool:
    """Whether a file contains records: by its suffix and the names in its first line."""
    if path.suffix == ".parquet":
        return True
    if path.suffix not in (".csv", ".jsonl", ".json") or not is_regular(path):
        return False
    with open_regular(path) as stream:
        first = stream.readline(_FIRST).decode("utf-8-sig", "replace").strip()
    if path.suffix == ".csv":
        names = first.split(",")
    else:
        try:
            row = msgspec.json.decode(first)
        except (msgspec.DecodeError, RecursionError):
            # Damaged: reported when it is read.
            return all(f'"{name}":' in first for name in _NEEDED)
        names = list(row) if isinstance(row, dict) else []
    return set(_NEEDED).issubset(names)


def read_record_file(path: Path) -> tuple[Record, ...]:
    """Read the records of a CSV or JSON lines file.

    Raises:
        LogParseError: a newer hpctrain wrote the file, or a line is damaged (file:line).
    """
    rows = _csv_rows(path) if path.suffix == ".csv" else _json_rows(path)
    try:
        return tuple(_record(f"{path}:{line}", row) for line, row in rows)
    except OSError as failure:
        raise LogParseError(f"{path}: {failure.strerror or failure}") from None
    except UnicodeDecodeError as failure:
        raise LogParseError(f"{path}: not UTF-8 text (byte {failure.start})", _AGAIN) from None


def newer(where: str, schema: object) -> LogParseError:
    """Return the error for a file of a newer schema."""
    return LogParseError(*newer_version(where, schema, SCHEMA))


def json_lines(pack: Pack) -> str:
    """Return the records of a pack as JSON lines."""
    return "".join([f"{msgspec.json.encode(record).decode()}\n" for record in pack.records()])


def csv_rows(packs: Iterable[Pack]) -> Iterator[str]:
    """Yield the lines of each pack, in the order of the fields of `Record`."""
    for pack in packs:
        text = io.StringIO()
        # A line end within a cell is quoted if it is the line end of the table.
        rows = map(msgspec.structs.astuple, pack.records())
        csv.writer(text, lineterminator="\n").writerows(rows)
        yield text.getvalue()


def _record(where: str, row: Any) -> Record:
    if not isinstance(row, dict):
        raise LogParseError(f"{where}: damaged: no record", _AGAIN)
    if row.get("schema", SCHEMA) != SCHEMA:
        raise newer(where, row["schema"])
    unknown = sorted(row.keys() - _FIELDS - {"schema"}, key=str)
    if unknown:
        raise newer(where, f"with {unknown[0]!r}")
    fields = {name: value for name, value in row.items() if name != "schema"}
    try:
        return msgspec.convert(fields, Record, strict=False)
    except msgspec.ValidationError as failure:
        raise LogParseError(f"{where}: damaged: {failure}", _AGAIN) from None


def _json_rows(path: Path) -> Iterator[tuple[int, Any]]:
    decode = msgspec.json.Decoder().decode
    with open_regular(path) as stream:
        for line, text in enumerate(iter(lambda: stream.readline(_LONGEST), b""), start=1):
            if not text.strip():
                continue
            try:
                yield line, decode(text)
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as failure:
                message = f"{path}:{line}: damaged: {failure}"
                raise LogParseError(message, _AGAIN) from None


def _csv_rows(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    with io.TextIOWrapper(open_regular(path), encoding="utf-8-sig", newline="") as stream:
        table = csv.DictReader(stream, strict=True)
        try:
            for row in table:
                if None in row or None in row.values():
                    where = f"{path}:{table.line_num}"
                    names = len(table.fieldnames or ())
                    raise LogParseError(f"{where}: not {names} cells: cut off?", _AGAIN)
                yield table.line_num, row | {key: None for key in _NULLABLE if not row.get(key)}
        except csv.Error as failure:
            raise LogParseError(f"{path}:{table.line_num}: damaged: {failure}", _AGAIN) from None
