"""Studies of several strategies: the run, point and comparison tables of given throughputs."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec
import pandas as pd

from hpc_train.runs.expected_runs import ExpectedStudy
from hpc_train.scaling.comparison import fastest_frame
from hpc_train.scaling.runs import run_frame
from hpc_train.scaling.speedup import speedup_frame
from tests.scaling.studies import expected, rate, study

SIZES = (1, 2, 4, 8)
NOISE = (0.99, 1.0, 1.01)
Rate = Callable[[int], float]
# A is slow and scales perfectly; B is fast, and its efficiency falls to 70 %.
SLOW_AND_FAST: dict[str, Rate] = {
    "A": lambda n: 100.0 * n,
    "B": lambda n: 300.0 * n / (1 + (n - 1) * (1 / 0.7 - 1) / 7),
}


class Tables(NamedTuple):
    """A study with its tables."""

    study: ExpectedStudy
    runs: pd.DataFrame
    points: pd.DataFrame
    fastest: pd.DataFrame


def tables(
    rates: Mapping[str, Rate],
    *,
    sizes: Sequence[int] = SIZES,
    noise: Sequence[float] = NOISE,
    failed: Sequence[tuple[str, int]] = (),
    work: Mapping[str, tuple[float, dict[str, str]]] | None = None,
    **fields: Any,
) -> Tables:
    """Return the tables of a study with a series for each function from nodes to throughput.

    `work`: global batch and conditions of a series.
    """
    runs, records = [], []
    for name, speed in rates.items():
        for nodes in sizes:
            for k, factor in enumerate(noise):
                state = "FAILED" if (name, nodes) in failed else "COMPLETED"
                axes = {"nodes": nodes, "launcher": name}
                run = expected(f"{name}-{nodes}-{k}", nodes=nodes, axes=axes, state=state)
                batch, own = (work or {}).get(name, (64, {}))
                runs.append(msgspec.structs.replace(run, repetition=k, conditions=own))
                if state == "COMPLETED":
                    records += rate(run.run_id, speed(nodes) * factor, batch)
    asked = msgspec.structs.replace(study(runs, baseline={"nodes": sizes[0]}), **fields)
    frame = run_frame(asked, records)
    points = speedup_frame(frame, asked)
    return Tables(asked, frame, points, fastest_frame(frame, points, asked))
