"""A finished study with two launchers, a failed run, a missing point and hostile words."""

import functools
from typing import Any

import msgspec

from hpc_train.jobs.job import Topology
from hpc_train.jobs.study import Gates, Warmup
from hpc_train.logs.record import Record
from hpc_train.reports.gates import gated, verdicts
from hpc_train.reports.report import Report, plain_rows
from hpc_train.reports.scaling_report import scaling_report
from hpc_train.runs.expected_runs import ExpectedRun, ExpectedStudy
from hpc_train.scaling.comparison import fastest_frame
from hpc_train.scaling.runs import run_frame
from hpc_train.scaling.speedup import speedup_frame

HOSTILE = "x | <script>\nalert(1)</script> [a](http://b) `c` \x1b[31m *d*"
LOSS = {("srun", 1): 1.0, ("srun", 2): 0.97, ("srun", 4): 0.6, ("torchrun", 1): 1.0,
        ("torchrun", 2): 0.9}  # fmt: skip


def finished(problem: str = HOSTILE) -> tuple[ExpectedStudy, list[Record]]:
    runs: list[ExpectedRun] = []
    records: list[Record] = []
    for launcher in ("srun", "torchrun"):
        for nodes in (1, 2, 4):
            for repetition in range(3):
                run = _run(launcher, nodes, repetition, problem)
                runs.append(run)
                if run.state == "COMPLETED":
                    value = 1000 * nodes * LOSS[launcher, nodes] * (1 + 0.01 * repetition)
                    records += _records(run.run_id, value)
    study = ExpectedStudy(
        name="resnet", runs=tuple(runs), baseline={"nodes": 1}, scaling="strong",
        warmup=Warmup(), gates=Gates(efficiency=0.75), notes=("study note",),
    )  # fmt: skip
    return study, records


@functools.cache
def report(problem: str = HOSTILE) -> Report:
    study, records = finished(problem)
    runs = run_frame(study, records)
    points = speedup_frame(runs, study)
    made = scaling_report(study, runs, points, fastest_frame(runs, points, study))
    return gated(made, verdicts(study.gates, plain_rows(points)))


def empty() -> Report:
    study = msgspec.structs.replace(finished()[0], runs=(), baseline={})
    runs = run_frame(study, [])
    return scaling_report(study, runs, speedup_frame(runs, study))


def _run(launcher: str, nodes: int, repetition: int, problem: str) -> ExpectedRun:
    state = "COMPLETED"
    if (launcher, nodes) == ("torchrun", 4):
        state = "MISSING" if repetition else "FAILED"
    return ExpectedRun(
        run_id=f"{launcher}-{nodes}-{repetition}",
        axes={"nodes": nodes, "launcher": launcher},
        repetition=repetition,
        topology=Topology(nodes=nodes, tasks_per_node=4, gpus_per_node=4, cpus_per_task=8),
        state=state,
        problem=problem if state == "FAILED" else "",
    )


def _records(run: str, rate: float) -> list[Record]:
    fields: dict[str, Any] = {
        "run": run, "source": "job.out", "line": 1, "parser": "event", "unit": "1",
        "scope": "global",
    }  # fmt: skip
    return [
        Record(metric="samples_per_second", value=rate, **fields),
        Record(metric="global_batch_size", value=512, **fields),
        Record(metric="accuracy", value=0.7, **fields),
    ]
