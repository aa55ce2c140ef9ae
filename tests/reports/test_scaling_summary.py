"""The summary claims only what the runs recorded."""

from pathlib import Path

import pytest

from hpc_train.jobs.log_selection import Search
from hpc_train.reports.build import build_report
from hpc_train.reports.report_inputs import report_inputs
from hpc_train.reports.text import first_screen


def summary(folder: Path, text: str, name: str = "table.csv") -> str:
    (folder / name).write_text(text)
    found = report_inputs([str(folder / name)], Search(root=folder / "none"))
    return " ".join(build_report(found).summary)


def test_one_stated_epoch_time_is_not_the_mean_without_the_first(tmp_path: Path) -> None:
    found = summary(tmp_path, "gpus,epoch_time\n1,100\n2,52\n")
    assert "first of several" not in found
    assert "the table has no step times" in found


@pytest.mark.parametrize(("count", "said"), [(1, False), (2, True)])
def test_the_first_epoch_is_left_out_of_several_only(
    tmp_path: Path, count: int, *, said: bool
) -> None:
    lines = [
        f'@hpct {{"v":1,"event":"epoch","rank":0,"epoch":{epoch},"epoch_time":2.5}}\n'
        for epoch in range(1, count + 1)
    ]
    found = summary(tmp_path, "".join(lines), "job.log")
    assert ("the first of several epochs is excluded" in found) is said


def test_batches_that_are_recorded_are_not_called_unrecorded(tmp_path: Path) -> None:
    head = "nodes,gpus,samples_per_second,state,global_batch_size\n"
    found = summary(tmp_path, f"{head}1,4,500,,256\n2,8,,FAILED,256\n")
    assert "strong or weak scaling: not known, no two sizes with known batches" in found
    assert "batches not recorded" in summary(tmp_path, f"{head}1,4,500,,\n2,8,900,,\n")
    none = summary(tmp_path, f"{head}1,4,,FAILED,256\n2,8,,FAILED,256\n")
    assert "strong or weak scaling: not known, no run has a result" in none


def test_two_series_of_two_regimes_are_not_called_one(tmp_path: Path) -> None:
    head = "nodes,gpus_per_node,global_batch_size,samples_per_second,case\n"
    rows = "1,4,256,500,a\n2,4,256,940,a\n1,4,256,501,b\n2,4,512,990,b\n"
    (tmp_path / "t.csv").write_text(head + rows)
    built = build_report(report_inputs([str(tmp_path / "t.csv")], Search(root=tmp_path / "none")))
    assert built.title == "t: strong and weak scaling, 2 series, 2 sizes, n=1, 4 of 4 runs ok"
    assert built.conditions["regime"] == "strong and weak"
    measured = next(line for line in built.summary if line.startswith("Measured:"))
    assert "strong scaling: the same global batch at every size (case=a)" in measured
    assert "weak scaling: the same batch per rank (case=b), derived" in measured


@pytest.mark.parametrize(
    ("rates", "said"),
    [
        # Efficiencies 65, 95, 88, 81 %: one small size does not speak for the larger ones.
        ("100 130 380 700 1300", "below 70 % at 2 GPUs only"),
        ("100 190 260 700 1000", "below 70 % at 4 and 16 GPUs only"),
        ("100 190 380 500 900", "at least 70 % up to 4 GPUs."),
        ("100 130 250 500 900", "below 70 % at 2, 4, 8 and 16 GPUs."),
    ],
)
def test_the_sizes_below_the_limit_are_named(tmp_path: Path, rates: str, said: str) -> None:
    rows = zip((1, 2, 4, 8, 16), rates.split(), strict=True)
    table = "".join(f"{gpus},64,{rate}\n" for gpus, rate in rows)
    found = summary(tmp_path, f"gpus,global_batch_size,samples_per_second\n{table}")
    assert f"fficiency is {said}" in found


HEAD = "gpus,global_batch_size,samples_per_second"


@pytest.mark.parametrize(
    ("table", "said"),
    [
        (f"{HEAD},val_acc\n1,64,100,0.76\n2,64,195,0.1\n", "accuracy 0.1 of row 2 (n=1), 66.00"),
        (f"{HEAD}\n1,64,100\n4,64,380\n".replace("gpus", "gpu_count"), "3.80 times 1 GPU"),
        (f"{HEAD}\n1,64,100\n2,64,195\n".replace("gpus", "workers"), "1.95 times 1 rank"),
        (f"{HEAD},loss\n1,64,100,2.5\n2,64,195,\n", "Not known: accuracy, loss at 2 GPUs, "),
        (
            f"{HEAD},precision\n1,64,100,fp32\n2,64,195,fp32\n4,64,700,bf16\n8,64,1300,bf16\n",
            "precision changes with the size, so no series has all sizes: fp32 at 1 ",
        ),
    ],
)
def test_the_first_screen_of_a_table(tmp_path: Path, table: str, said: str) -> None:
    (tmp_path / "t.csv").write_text(table)
    built = build_report(report_inputs([str(tmp_path / "t.csv")], Search(root=tmp_path / "none")))
    assert said in " ".join(first_screen(built).split())
