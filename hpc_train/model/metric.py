"""Metric: one quantity of runs and points, with all that tables and reports need to know of it."""

from __future__ import annotations

from typing import Literal

from hpc_train.model.value import Value

Direction = Literal["higher", "lower", ""]
# How the records of a run become its value.
OfRun = Literal["none", "given", "computed", "last", "highest", "median", "total", "rate"]
# How the values of the runs of a point become that of the point.
OverRuns = Literal["none", "computed", "mean", "harmonic", "same", "least", "most"]
# Which scopes a record may have so that its values can be added up; any without.
Scopes = tuple[Literal["global", "per_rank", "per_gpu"], ...]


class Basis(Value, frozen=True, kw_only=True):
    """What a speedup can be the ratio of: a rate of `item`, or, without one, a time.

    `sentence`, `heading` and `axis` are its unit in a sentence, in a table and at an axis, where
    they are not those of a rate.
    """

    name: str
    item: str = ""
    sentence: str = ""
    heading: str = ""
    axis: str = ""

    @property
    def is_rate(self) -> bool:
        """Whether more is faster."""
        return bool(self.item)

    @property
    def in_sentence(self) -> str:
        """The unit behind a number: `samples/s`, `s an epoch`."""
        return self.sentence or f"{self.item}/s"

    @property
    def in_heading(self) -> str:
        """The unit in a heading: `samples/s`, `epoch, s`."""
        return self.heading or f"{self.item}/s"

    @property
    def at_axis(self) -> str:
        """The label of an axis: `throughput [samples/s]`, `epochs per hour`."""
        return self.axis or f"throughput [{self.item}/s]"


class TextColumn(Value, frozen=True, kw_only=True):
    """How the points table shows a metric, always or with `--wide`.

    Where a heading has `{level}`, the level of confidence, the column shows the interval too;
    `wide_heading` is that of the wide table where it is another. Values are multiplied by `factor`
    and have four significant digits, or as many `decimals`; a `whole` one none that it needs not.
    The column stands behind that of the metric before it, or `after` another.
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

    `name`: in long tables (`-f tidy`), which lack a metric without one. `unit`, and the `direction`
    which is better. `record`: the metric of the records that it is made of, those without a variant
    and those whose variant begins with `variant`; `scopes` are the scopes that it may have.
    `of_run` and `over_runs` say how values are made, `computed` by a rule of their own; `none`: a
    table that lacks it. `limits`: the points have its interval, as one object in JSON or as
    `columns` of their own. `json_key`: its key in `rows` of JSON and CSV, where it is another.
    `basis`: a speedup may be its ratio. `text`: its column in the points table. `run_heading`: its
    heading in the page's table of runs.
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
