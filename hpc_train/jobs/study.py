"""Study: a grid of jobs with repetitions, a baseline and a scaling regime."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from msgspec import Meta

from hpc_train.base.values import Value
from hpc_train.jobs.job import Name, SourcedJob
from hpc_train.jobs.log_selection import LogPattern

Scalar = str | int | float | bool
Scaling = Literal["strong", "weak"]


class Warmup(Value, frozen=True, kw_only=True):
    """Steps left out at the start of a run: a minimum number and a minimum time."""

    steps: Annotated[int, Meta(ge=0, le=1_000_000, description="Steps left out.")] = 10
    seconds: Annotated[
        float, Meta(ge=0, description="Seconds left out, in addition to the steps.")
    ] = 0.0


class Regression(Value, frozen=True, kw_only=True):
    """Reference of the regression gate, and its tolerance."""

    against: Annotated[
        str, Meta(min_length=1, description="A study, report.json, or another input of `report`.")
    ]
    tolerance: Annotated[float, Meta(ge=0, lt=1, description="Allowed slowdown: 0.05 = 5 %.")] = (
        0.05
    )


class Gates(Value, frozen=True, kw_only=True):
    """Limits of `report --check`; None means no such gate."""

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
        bool | None, Meta(description="Whether the job script of each run must exist.")
    ] = None
    missing: Annotated[
        bool | None, Meta(description="Whether each point needs an ok run; default: true.")
    ] = None
    plausible: Annotated[
        bool | None,
        Meta(description="Whether implausible values fail; default: true."),
    ] = None
    busbw: Annotated[
        Annotated[float, Meta(gt=0)] | None,
        Meta(description="Least bus bandwidth of the largest message, GB/s."),
    ] = None
    accuracy: Annotated[
        Annotated[float, Meta(ge=0, le=1)] | None,
        Meta(
            description="Largest decrease of a run's accuracy below the baseline's; default: 0.03."
        ),
    ] = None
    loss: Annotated[
        Annotated[float, Meta(ge=0, le=1e9)] | None,
        Meta(
            description=(
                "Largest increase of a run's loss, as a fraction of the baseline's; default: 0.5."
            )
        ),
    ] = None
    regression: Annotated[
        Regression | None, Meta(description="Reference that the points must not be slower than.")
    ] = None


class StudySpec(Value, frozen=True, kw_only=True):
    """The contents of study.yaml."""

    name: Name
    job: Annotated[
        str | dict[str, Any], Meta(description="Path of the job file, or the job itself.")
    ]
    axes: Annotated[
        dict[str, list[Any]],
        Meta(
            min_length=1,
            description="Key of the job, or `site`, -> its values; the grid is their product.",
        ),
    ]
    scaling: Annotated[
        Scaling | None,
        Meta(
            description="strong: the global batch stays the same; weak: the batch per rank does; "
            "default: what the runs record, else strong is assumed."
        ),
    ] = None
    global_batch_size: Annotated[
        Annotated[float, Meta(gt=0)] | None,
        Meta(
            description="Samples in a step of all ranks, if the runs do not print it; with weak "
            "scaling, of each rank.",
        ),
    ] = None
    repetitions: Annotated[int, Meta(ge=1, le=1000, description="Jobs at each point.")] = 3
    baseline: Annotated[
        dict[str, Scalar],
        Meta(
            description="Axis values of the point whose speedup is 1; default: the smallest point."
        ),
    ] = {}
    warmup: Warmup = Warmup()
    gates: Gates = Gates()
    conditions: Annotated[
        dict[str, Scalar],
        Meta(
            description="Facts that the runs do not print: parameters, flops_per_sample, "
            "gpu_peak_tflops, precision …"
        ),
    ] = {}
    pattern: Annotated[
        LogPattern | tuple[LogPattern, ...],
        Meta(description="Patterns of log lines without a parser; one pattern, or a list."),
    ] = ()
    placement: Annotated[
        Literal["independent", "nested"],
        Meta(description="nested: every size inside one allocation of the largest."),
    ] = "independent"
    seed: Annotated[
        int, Meta(ge=0, description="Seed of the random order of the runs of each repetition.")
    ] = 0

    @property
    def patterns(self) -> tuple[LogPattern, ...]:
        """The patterns, one or several."""
        return (self.pattern,) if isinstance(self.pattern, LogPattern) else self.pattern


class Point(Value, frozen=True, kw_only=True):
    """One cell of the grid: its axis values and its job."""

    axes: dict[str, Any]
    job: SourcedJob


class RefusedPoint(Value, frozen=True, kw_only=True):
    """A point of the grid whose strategy cannot run there; the reason is a sentence."""

    axes: dict[str, Any]
    reason: str


class Study(Value, frozen=True, kw_only=True):
    """A study with its grid expanded; `baseline` is a subset of the axes' values."""

    spec: StudySpec
    points: tuple[Point, ...]
    baseline: dict[str, Any]


SIZE_AXES = frozenset({"nodes", "gpus_per_node", "tasks_per_node"})
ALONE = "all"


def axis_name(key: str) -> str:
    """Return the short name of an axis: `nodes` for `resources.nodes`."""
    return key.removeprefix("resources.")


def series_label(axes: Mapping[str, Any]) -> str:
    """Return `launcher=srun, env.X=1` from the axes that are not sizes; `all` without any."""
    parts = [f"{axis_name(k)}={v}" for k, v in axes.items() if axis_name(k) not in SIZE_AXES]
    return ", ".join(parts) or ALONE


def size_of(axes: Mapping[str, Any], name: str) -> int | None:
    """Return the value of a size axis, None where the study does not vary it."""
    value = axes.get(name, axes.get(f"resources.{name}"))
    return value if isinstance(value, int) else None


def narrowed(label: str, name: str, value: str) -> str:
    """Return the label of the part of a series in which something has one value."""
    return f"{name}={value}" if label == ALONE else f"{label}, {name}={value}"
