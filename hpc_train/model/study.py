"""Study: a grid of jobs with repetitions, a baseline and a scaling regime."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import Meta

from hpc_train.model.job import JobSpec, Name
from hpc_train.model.log_pattern import LogPattern
from hpc_train.model.plan import Topology
from hpc_train.model.run import ManifestSchema
from hpc_train.model.value import Sourced, Value

Scalar = str | int | float | bool
Scaling = Literal["strong", "weak"]


class Warmup(Value, frozen=True, kw_only=True):
    """Steps left out at the start of a run: at least so many, and for at least so long."""

    steps: Annotated[int, Meta(ge=0, le=1_000_000, description="Steps left out.")] = 10
    seconds: Annotated[float, Meta(ge=0, description="Seconds left out, beside the steps.")] = 0.0


class Regression(Value, frozen=True, kw_only=True):
    """What the points must not be slower than, and by how much they may be."""

    against: Annotated[
        str, Meta(min_length=1, description="A study, report.json, or what report takes.")
    ]
    tolerance: Annotated[
        float, Meta(ge=0, lt=1, description="Loss that is allowed: 0.05 = 5 %.")
    ] = 0.05


class Gates(Value, frozen=True, kw_only=True):
    """Limits that `report --check` enforces; a gate that is None was not asked for."""

    rule: Annotated[
        Literal["csc"] | None,
        Meta(description="csc (Mahti): 3 node counts, efficiency 0.75, doubling 1.5, the script."),
    ] = None
    efficiency: Annotated[
        Annotated[float, Meta(gt=0, le=2)] | None,
        Meta(description="Least parallel efficiency, 0.75 = 75 %."),
    ] = None
    doubling: Annotated[
        Annotated[float, Meta(gt=0, le=4)] | None,
        Meta(description="Least speedup from half the size, 2 is ideal."),
    ] = None
    node_counts: Annotated[
        Annotated[int, Meta(ge=1, le=100)] | None,
        Meta(description="Least number of different node counts with a result."),
    ] = None
    script: Annotated[
        bool | None, Meta(description="Whether the job script of each run must be there.")
    ] = None
    missing: Annotated[
        bool | None, Meta(description="Whether each point needs an ok run; default: true.")
    ] = None
    busbw: Annotated[
        Annotated[float, Meta(gt=0)] | None,
        Meta(description="Least bus bandwidth of the largest message, GB/s."),
    ] = None
    accuracy: Annotated[
        Annotated[float, Meta(ge=0, le=1)] | None,
        Meta(description="Largest fall of a run's accuracy below the baseline's; default: 0.05."),
    ] = None
    loss: Annotated[
        Annotated[float, Meta(ge=0, le=1e9)] | None,
        Meta(description="Largest rise of a run's loss, as a share of the baseline's; default: 1."),
    ] = None
    regression: Annotated[
        Regression | None, Meta(description="What the points must not be slower than.")
    ] = None


class StudySpec(Value, frozen=True, kw_only=True):
    """A study as it is written in study.yaml."""

    name: Name
    job: Annotated[
        str | dict[str, Any], Meta(description="Path of the job file, or the job itself.")
    ]
    axes: Annotated[
        dict[str, list[Any]],
        Meta(min_length=1, description="Key of the job -> its values; the grid is their product."),
    ]
    scaling: Annotated[
        Scaling,
        Meta(description="strong: the global batch stays the same; weak: the batch per rank does."),
    ]
    repetitions: Annotated[int, Meta(ge=1, le=1000, description="Jobs at each point.")] = 3
    baseline: Annotated[
        dict[str, Scalar],
        Meta(description="Axis values of the runs that count as 1; default: the smallest point."),
    ] = {}
    warmup: Warmup = Warmup()
    gates: Gates = Gates()
    pattern: Annotated[
        LogPattern | tuple[LogPattern, ...],
        Meta(description="Lines of the logs that no parser knows; one pattern, or a list."),
    ] = ()
    placement: Annotated[
        Literal["independent", "nested"],
        Meta(description="nested: every size inside one allocation of the largest."),
    ] = "independent"
    seed: Annotated[int, Meta(ge=0, description="Seed of the random order of the runs.")] = 0

    @property
    def patterns(self) -> tuple[LogPattern, ...]:
        """The patterns, one or several."""
        return (self.pattern,) if isinstance(self.pattern, LogPattern) else self.pattern


class Point(Value, frozen=True, kw_only=True):
    """One cell of the grid: its axis values and the job that they make."""

    axes: dict[str, Any]
    job: Sourced[JobSpec]


class Study(Value, frozen=True, kw_only=True):
    """A study with its grid expanded; `baseline` is a subset of the axes' values."""

    spec: StudySpec
    points: tuple[Point, ...]
    baseline: dict[str, Any]


class StudyPoint(Value, frozen=True, kw_only=True):
    """A point as it was submitted; run ids are `<stem>-r<repetition>`."""

    axes: dict[str, Any]
    topology: Topology
    stem: str


class StudyManifest(Value, frozen=True, kw_only=True):
    """study.json: everything that a study asked for, so that what is missing can be named."""

    schema: ManifestSchema
    spec: StudySpec
    baseline: dict[str, Any]
    points: tuple[StudyPoint, ...]
