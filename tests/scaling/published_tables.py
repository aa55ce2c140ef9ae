"""Tables that others have published, as CSV files of ours, and what their sources conclude.

One row for each job. Rates of DDP, DLPerf, MPT and BERT are of all GPUs together, times in seconds.
"""

import csv
from pathlib import Path

import msgspec

from hpc_train.jobs.job import Topology
from hpc_train.jobs.study import Scaling
from hpc_train.logs.record import Record
from hpc_train.runs.expected_runs import ExpectedRun, ExpectedStudy
from tests.cases import cases
from tests.scaling.studies import record, study

FOLDER = Path(__file__).parent / "published"
TIMES = ("epoch_time", "time_to_train")


class Published(msgspec.Struct, frozen=True):
    """Speedups and efficiencies in percent, as printed; empty where the source has none.

    `late` says that the source divided numbers which it had not yet rounded, so that the last digit
    of the rates counts as well as that of the speedups.
    """

    source: str
    speedups: tuple[int | float, ...] = ()
    percents: tuple[int | float, ...] = ()
    late: bool = False


PUBLISHED: dict[str, Published] = msgspec.convert(
    cases("scaling/published.yaml", "PUBLISHED"), dict[str, Published]
)


def path_of(name: str) -> Path:
    """Return the CSV file of a published table."""
    return FOLDER / f"{name}.csv"


def rows_of(name: str) -> list[dict[str, str]]:
    """Return the rows of a published table, as text."""
    with path_of(name).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def measured(
    name: str, scaling: Scaling | None = None, parser: str = "event"
) -> tuple[ExpectedStudy, list[Record]]:
    """Return a published table as a study: one run for each row, and its numbers as records."""
    runs, records = [], []
    for number, row in enumerate(rows_of(name), start=1):
        nodes, gpus, tasks = (
            int(row.pop(key)) for key in ("nodes", "gpus_per_node", "tasks_per_node")
        )
        run = f"row {number}"
        topology = Topology(nodes=nodes, gpus_per_node=gpus, tasks_per_node=tasks, cpus_per_task=1)
        runs.append(
            ExpectedRun(run_id=run, axes={}, repetition=1, topology=topology, state="COMPLETED")
        )
        records += [
            record(run, metric, float(text), parser=parser, step=1 if metric in TIMES else None)
            for metric, text in row.items()
        ]
    return study(runs, scaling=scaling), records


def half_unit(text: str) -> float:
    """Return half of the last digit's place: how far a rounded number may be off."""
    return 0.5 * 10.0 ** -len(text.partition(".")[2])
