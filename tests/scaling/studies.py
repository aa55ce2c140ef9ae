"""Studies and records as other stages would hand them over."""

from collections.abc import Mapping, Sequence
from typing import Any

from hpc_train.jobs.job import Topology
from hpc_train.jobs.study import Gates, Scaling, Warmup
from hpc_train.logs.record import Record
from hpc_train.runs.expected_runs import ExpectedRun, ExpectedStudy

NO_WARMUP = Warmup(steps=0)


def expected(
    run_id: str,
    *,
    nodes: int = 1,
    gpus: int = 1,
    state: str = "COMPLETED",
    axes: Mapping[str, Any] | None = None,
) -> ExpectedRun:
    return ExpectedRun(
        run_id=run_id,
        axes={"nodes": nodes} if axes is None else dict(axes),
        repetition=0,
        topology=Topology(
            nodes=nodes, tasks_per_node=max(gpus, 1), gpus_per_node=gpus, cpus_per_task=1
        ),
        state=state,
        problem="" if state == "COMPLETED" else "rank 1: exit code 3",
    )


def foreign(run_id: str, repetition: int = 1) -> ExpectedRun:
    """A log without a run folder."""
    return ExpectedRun(
        run_id=run_id, axes={}, repetition=repetition, topology=None, state="COMPLETED"
    )


def study(
    runs: Sequence[ExpectedRun],
    *,
    baseline: Mapping[str, Any] | None = None,
    scaling: Scaling | None = None,
    warmup: Warmup = NO_WARMUP,
    efficiency: float | None = None,
) -> ExpectedStudy:
    return ExpectedStudy(
        name="study",
        runs=tuple(runs),
        baseline=dict(baseline or {}),
        scaling=scaling,
        warmup=warmup,
        gates=Gates(efficiency=efficiency),
    )


def record(run: str, metric: str, value: float, **fields: Any) -> Record:
    given = {
        "source": "job.out", "line": 1, "parser": "event", "unit": "1", "scope": "global", **fields,
    }  # fmt: skip
    return Record(run=run, metric=metric, value=value, **given)


def rate(run: str, value: float, batch: float | None = None) -> list[Record]:
    """A run that printed its throughput, and its global batch if there is one."""
    records = [record(run, "samples_per_second", value)]
    return records if batch is None else [*records, record(run, "global_batch_size", batch)]


def steps(run: str, times: Sequence[Sequence[float]], samples: float = 8) -> list[Record]:
    """`times[rank][step]` seconds; each rank's share of a step is `samples`."""
    return [
        record(run, metric, value, scope="per_rank", step=step, rank=rank)
        for rank, of_rank in enumerate(times)
        for step, time in enumerate(of_rank, start=1)
        for metric, value in (("step_time", time), ("samples", samples))
    ]
