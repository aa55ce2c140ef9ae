"""Reports on sets of real logs: the tables that their authors published, or would have."""

from typing import Any

import pytest

from hpc_train.jobs.log_selection import Search
from hpc_train.reports.build import build_report
from hpc_train.reports.report import Report
from hpc_train.reports.report_inputs import report_inputs
from tests.known.folder import FOLDER, rows
from tests.known.stated import NOWHERE

CIFAR = [row for row in rows() if row.file.startswith("srun_label_custom/cifar10_")]
SETS = sorted({row.path.parent for row in rows() if "set" in row.expected})


def report(*files: str, **sizes: tuple[int, ...]) -> Report:
    search = Search(root=NOWHERE, sizes=sizes)
    found = report_inputs([str(FOLDER / file) for file in files], search)
    return build_report(found)


def points(*files: str, **sizes: tuple[int, ...]) -> list[dict[str, Any]]:
    return [dict(row) for row in report(*files, **sizes).tables[0].records]


@pytest.mark.parametrize("row", CIFAR, ids=lambda row: row.file)
def test_rates_of_ranks_are_added(row: Any) -> None:
    ranks = tuple(one.expected["ranks"] for one in CIFAR)
    table = points(*(one.file for one in CIFAR), ranks=ranks)
    assert len(table) == len(CIFAR)
    own = next(point for point in table if point["ranks"] == row.expected["ranks"])
    assert own["speedup"]["value"] == pytest.approx(row.expected["speedup"], rel=0.001)
    assert own["efficiency"]["value"] == pytest.approx(row.expected["efficiency"], rel=0.001)
    assert not any(flag.startswith("varies") for flag in own["flags"])


def test_results_of_one_size_are_repetitions() -> None:
    table = points(*(str(folder) for folder in SETS))
    assert len(table) == len(SETS)
    for folder in SETS:
        of_set = [row.expected for row in rows() if row.path.parent == folder]
        own = next(point for point in table if point["ranks"] == of_set[0]["gpus"])
        assert own["n_ok"] == len(of_set)
        minutes = sum(one["time_to_train_min"] for one in of_set) / len(of_set)
        assert own["time_to_train_s"] / 60 == pytest.approx(minutes, abs=0.001)


def test_times_of_megatron_without_the_first_interval() -> None:
    files = [row for row in rows() if row.file.startswith("megatron/bs_n")]
    table = points(*(row.file for row in files))
    for row in files:
        own = next(point for point in table if point["ranks"] == row.expected["gpus"])
        expected = row.expected["median_step_ms_excl_first"]
        assert own["step_time_s"] * 1e3 == pytest.approx(expected, rel=0.005)


@pytest.mark.parametrize(
    ("form", "key"),
    [("horovod_synth", "img_s_total"), ("mxnet_speedometer", "median_samples_per_s_global")],
)
def test_a_global_rate_is_not_multiplied(form: str, key: str) -> None:
    for row in (row for row in rows() if row.form == form):
        (own,) = points(row.file)
        assert own["ranks"] == row.expected["gpus"]
        assert own["throughput"]["value"] == pytest.approx(row.expected[key], rel=0.005)
