"""Tables with every column that figures can show, made by a law instead of by runs."""

from collections.abc import Sequence
from typing import Any

import msgspec
import pandas as pd

from hpc_train.jobs.study import Gates
from hpc_train.reports.figures.canvas import Measured
from hpc_train.runs.expected_runs import ExpectedStudy
from hpc_train.scaling.runs import run_frame
from hpc_train.scaling.scaling_fits import CurvePoint, Fit, Parameter
from hpc_train.scaling.speedup import speedup_frame
from tests.scaling.studies import expected, rate, record, study

GPUS = 4


def measured(
    sizes: Sequence[int] = (1, 2, 4, 8, 16, 32, 64),
    series: Sequence[str] = ("srun", "torchrun", "mpirun"),
    repetitions: int = 5,
    failed: Sequence[tuple[str, int]] = (("torchrun", 32), ("mpirun", 64)),
) -> tuple[ExpectedStudy, Measured]:
    """Return a strong-scaling study: each series loses a little more with each doubling."""
    runs, records = [], []
    for i, name in enumerate(series):
        for nodes in sizes:
            for k in range(repetitions):
                state = "FAILED" if (name, nodes) in failed else "COMPLETED"
                axes = {"nodes": nodes, "launcher": name} if len(series) > 1 else {"nodes": nodes}
                run = expected(
                    f"{name}-{nodes}-{k}", nodes=nodes, gpus=GPUS, state=state, axes=axes
                )
                runs.append(msgspec.structs.replace(run, repetition=k))
                if state == "COMPLETED":
                    value = _rate(nodes, i) * (1 + 0.012 * ((7 * k + 3 * nodes + i) % 5 - 2))
                    records += rate(run.run_id, value, 4096)
                    records.append(record(run.run_id, "accuracy", 0.76))
    asked = msgspec.structs.replace(
        study(runs, baseline={"nodes": sizes[0]}), name="ResNet-50 on Big", scaling="strong",
        gates=Gates(efficiency=0.75),
    )  # fmt: skip
    table = run_frame(asked, records)
    table["step_time_s"] = 4096 / table["samples_per_second"]
    points = speedup_frame(table, asked)
    _complete(points)
    laws = tuple(law for name in dict.fromkeys(points["series"]) for law in fitted(points, name))
    return asked, Measured(table, points, laws, node_times(table))


def _rate(nodes: int, series: int) -> float:
    return 2800 * nodes / (1 + (0.006 + 0.006 * series) * (nodes - 1))


def _complete(points: pd.DataFrame) -> None:
    """Add the columns that depend on logs of steps and phases."""
    points["step_time_s"] = 4096 / points["samples_per_second"]
    for name, factor in (("p05", 0.96), ("p25", 0.985), ("p75", 1.03), ("p95", 1.35)):
        points[f"step_{name}_s"] = points["step_time_s"] * factor
    points["communication_share"] = 1 - points["efficiency"].clip(upper=1) * 0.97
    points["data_share"] = 0.03 * points["communication_share"].notna()
    points.loc[points["n_ok"] == 0, ["data_share"]] = float("nan")


def fitted(points: pd.DataFrame, series: str, peak: float | None = None) -> tuple[Fit, ...]:
    """Return curves that pass near the points, and one refusal."""
    own = points[(points["series"] == series) & points["speedup"].notna()]
    largest = float(own["ideal"].max())
    serial = 0.007
    curve = []
    for i in range(41):
        q = (2 * largest) ** (i / 40)
        value, width = 1 / (serial + (1 - serial) / q), 0.002 * q
        curve.append(
            CurvePoint(
                q=q, speedup=value, low=value - width, high=value + width, measured=q <= largest
            )
        )
    usl = [
        CurvePoint(
            q=c.q, speedup=c.q / (1 + 0.004 * (c.q - 1) + 0.0001 * c.q * (c.q - 1)), low=None,
            high=None, measured=c.measured,
        )
        for c in curve
    ]  # fmt: skip
    bound = (
        None if peak is None else Parameter(name="peak", value=peak, low=peak - 9, high=peak + 9)
    )
    common: dict[str, Any] = {"series": series, "points": len(own), "largest_q": largest}
    return (
        Fit(law="amdahl", curve=tuple(curve), rms=0.01, **common),
        Fit(law="usl", curve=tuple(usl), peak=bound, rms=0.01, **common),
        Fit(law="gustafson", series=series, refused="the regime is strong"),
    )


def node_times(runs: pd.DataFrame, slow: str = "node07", by: float = 1.12) -> pd.DataFrame:
    """Return a step time of each node of each run, one node slower than the others."""
    rows = []
    for row in runs[runs["state"] == "COMPLETED"].to_dict("records"):
        for i in range(int(row["nodes"])):
            name = f"node{i + 1:02d}"
            noise = 1 + 0.008 * ((5 * i + 3 * int(row["repetition"])) % 7 - 3) / 3
            factor = by if name == slow else noise
            rows.append((row["run_id"], name, row["step_time_s"] * factor, GPUS))
    names = pd.Index(["run_id", "node", "step_time_s", "ranks"])
    table: pd.DataFrame = pd.DataFrame(rows, columns=names)
    return table
