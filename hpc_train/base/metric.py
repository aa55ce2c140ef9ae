"""Metric: one quantity of runs and points, with its properties for tables and reports."""

from typing import Literal

from hpc_train.base.value import Value

Direction = Literal["higher", "lower", ""]
# How the records of a run become its value.
OfRun = Literal["none", "given", "computed", "last", "highest", "median", "rate"]
# How the values of the runs of a point become the value of the point.
OverRuns = Literal["none", "computed", "mean", "harmonic", "same", "least", "most"]
# The scopes of records whose values can be summed; empty means all scopes.
Scopes = tuple[Literal["global", "per_rank", "per_gpu"], ...]


class Basis(Value, frozen=True, kw_only=True):
    """A quantity whose ratio is a speedup: a rate of `item` or, without `item`, a time.

    Of several the one of the lowest `rank` is used. `sentence`, `heading` and `axis` are its unit
    in a sentence, in a table and on an axis, if they differ from those of a rate; the axis of a
    time shows its inverse per `per_s` seconds. The speedup of a time assumes the same `same`
    at every size.
    """

    name: str
    rank: int
    item: str = ""
    sentence: str = ""
    heading: str = ""
    axis: str = ""
    per_s: float = 3600.0
    same: str = ""

    @property
    def is_rate(self) -> bool:
        """Whether a higher value is faster."""
        return bool(self.item)

    @property
    def counted(self) -> str:
        """What a cost is of: `tokens`, else `samples`."""
        return self.item or "samples"

    @property
    def per_step(self) -> bool:
        """Whether it is the time of a step, whose work the batch decides."""
        return self.per_s == 1.0

    @property
    def in_sentence(self) -> str:
        """The unit after a number: `samples/s`, `s an epoch`."""
        return self.sentence or f"{self.item}/s"

    @property
    def in_heading(self) -> str:
        """The unit in a heading: `samples/s`, `epoch time [s]`."""
        return self.heading or f"{self.item}/s"

    @property
    def at_axis(self) -> str:
        """The label of an axis: `throughput [samples/s]`, `epochs per hour`."""
        return self.axis or f"throughput [{self.item}/s]"


class TextColumn(Value, frozen=True, kw_only=True):
    """How the points table shows a metric, always or with `--wide`.

    If the heading contains `{level}`, the level of confidence, the column also shows the interval.
    `{own}` stands for `own-series` where each of several series has its own baseline, `{items}` for
    the samples or tokens that are counted.
    `wide_heading` is the heading of the wide table, if it differs. Values are multiplied by
    `factor` and have four significant digits, or `decimals` decimals; with `whole`, zeros after the
    decimal point are omitted. The column follows that of the previous metric, or of `after`.
    """

    heading: str
    wide_heading: str = ""
    compact: bool = False
    decimals: int | None = None
    factor: float = 1
    whole: bool = False
    after: str = ""


class Metric(Value, frozen=True, kw_only=True):
    """One quantity: `key` is its column in the tables of runs and of points, and in every file.

    `name`: its name in long tables (`-f tidy`), which omit a metric without a name. `direction`:
    the better one. `record`: the metric of the records from which it is computed: those without a
    variant, and those whose variant begins with `variant`; `scopes` are the allowed scopes.
    `of_run` and `over_runs`: how its values are computed; `computed` means a special rule, and
    `none` a table without the metric. `limits`: its interval at points, as one object in JSON or as
    separate `columns`. `json_key`: its key in `rows` of JSON and CSV, if it differs. `basis`: its
    ratio is a speedup. `text`: its column in the points table. `run_heading`: its heading in the
    page's table of runs.
    """

    key: str
    name: str = ""
    unit: str = "1"
    direction: Direction = ""
    record: str = ""
    variant: str = ""
    scopes: Scopes = ()
    of_run: OfRun = "median"
    over_runs: OverRuns = "mean"
    limits: Literal["", "object", "columns"] = ""
    counts: bool = False
    json_key: str = ""
    basis: Basis | None = None
    text: TextColumn | None = None
    run_heading: str = ""
