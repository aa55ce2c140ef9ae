"""Which logs are read, and the patterns of lines that a user defines."""

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Literal

from msgspec import Meta

from hpc_train.base.value import Value

StatedScope = Literal["global", "per_gpu", "per_rank"]
PLACES = frozenset({"step", "rank"})
"""Groups that are no metrics, but say where the metrics belong."""


class LogPattern(Value, frozen=True, kw_only=True):
    """A pattern of log lines, and the meaning of its groups."""

    regex: Annotated[
        str,
        Meta(min_length=1, max_length=2000, description="Python regex; named groups are metrics."),
    ]
    scope: Annotated[
        StatedScope, Meta(description="Scope of the values: the job, one GPU or one rank.")
    ]
    literal: Annotated[
        str, Meta(description="Text in every such line; default: the longest in the regex.")
    ] = ""
    units: Annotated[
        dict[str, str], Meta(description="New metric -> its unit, `W` for power.")
    ] = {}
    scale: Annotated[
        dict[str, float],
        Meta(description="Metric -> factor to the metric's unit, 0.001 for ms."),
    ] = {}


class Search(Value, frozen=True, kw_only=True):
    """Folder of runs, and formats, patterns and prefixes of logs.

    `points` is a file with the sizes of logs, `sizes` are `gpus`, `nodes` and `ranks` in the order
    of the logs. `excluded` names excluded runs, with the reason. With `allow_failed`, logs that end
    in a failure also count. A person may state `scaling`, `batch` (samples in a step of all ranks;
    of each rank with weak scaling), and whether `rates` of an unknown scope are of the job or of
    each rank. The form `table` is that of a table of results.
    """

    root: Path
    form: str = "auto"
    patterns: tuple[LogPattern, ...] = ()
    prefix: str = ""
    points: Path | None = None
    sizes: Mapping[str, tuple[int, ...]] = MappingProxyType({})
    excluded: Mapping[str, str] = MappingProxyType({})
    allow_failed: bool = False
    scaling: Literal["strong", "weak"] | None = None
    batch: float | None = None
    rates: Literal["job", "rank"] | None = None
