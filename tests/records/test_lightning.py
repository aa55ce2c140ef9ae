"""Lightning's bars and tables, and NeMo's, which are made of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpc_train.records.collect import collect
from hpc_train.records.parse_stats import ParseStats
from tests.records.parse_text import Brief, brief, parse, values

LOGS = Path(__file__).parents[1] / "logs"


def test_bar_is_drawn_again_after_its_values_are_set() -> None:
    text = (
        b"Epoch 0:   0%|          | 0/50 [00:00<?, ?it/s]\r"
        b"Epoch 0:   2%|2| 1/50 [00:20<00:24,  20.0s/it]\r"
        b"Epoch 0:   2%|2| 1/50 [00:20<00:24,  20.0s/it, v_num=3, train_loss_step=2.50]\r"
        b"Epoch 0:   4%|4| 2/50 [00:45<00:24,  22.5s/it, v_num=3, train_loss_step=2.50]\r"
        b"Epoch 0:   4%|4| 2/50 [00:45<00:24,  22.5s/it, v_num=3, train_loss_step=2.25]\n"
        b"Epoch 1:   2%|2| 1/50 [00:30<00:24,  30.0s/it, v_num=3, train_loss_step=nan]\n"
    )
    assert brief(text) == [
        ("step_time", 20, "per_rank", 1, None),
        ("loss", 2.5, "per_rank", 1, None),
        ("step_time", 25, "per_rank", 2, None),
        ("loss", 2.25, "per_rank", 2, None),
        ("step_time", 30, "per_rank", 51, None),
    ]


def test_old_bar_and_rank() -> None:
    text = b"3: Epoch 2:  50%|5| 5/10 [00:50<00:50,  10.0s/it, loss=0.693, v_num=1]\n"
    assert brief(text) == [
        ("step_time", 10, "per_rank", 25, 3),
        ("loss", 0.693, "per_rank", 25, 3),
    ]


def test_bar_without_an_end() -> None:
    text = (
        b"Epoch 0: 10it [00:20,  2.00s/it, v_num=0, loss=2.5]\n"
        b"Epoch 1: 5it [00:20,  4.00s/it, v_num=0, loss=2.25]\n"
    )
    assert [(value, step) for _, value, _, step, _ in brief(text)] == [
        (2, 10), (2.5, 10), (4, None), (2.25, None),
    ]  # fmt: skip
    rich = "Epoch 0/-2 ━━━━ {}/-- 0:0{}:00 • -:--:-- 0.50it/s v_num: x train_loss: 10.5\n"
    text = (rich.format(0, 0) + rich.format(50, 2)).encode()
    assert [(value, step) for _, value, _, step, _ in brief(text)] == [(2.4, 50), (10.5, 50)]
    text = b"Epoch 1: : 5it [00:20,  4.00s/it, v_num=d3c7, reduced_train_loss=0.5, global_step=1.0]"
    assert brief(text) == [("step_time", 4, "global", 1, None), ("loss", 0.5, "global", 1, None)]


def test_slow_bar_is_read_from_its_clock() -> None:
    line = "Epoch 0:  10%|1| {} [{}<2:00:00,  {}it/s, v_num=0]\n"
    shown = [("8/80", "16:00", "0.01"), ("9/80", "1:00:00", "0.00"), ("49/80", "1:06:40", "0.10")]
    text = "".join(line.format(*each) for each in shown)
    assert values(text.encode(), "step_time") == [120, 2640, 10]
    rich = "Epoch 0/9 ━━━━ 3/100 0:02:03 • 0:00:28 0.02it/s v_num: 0\n"
    assert values(rich.encode(), "step_time") == [41]


def test_rich_bar_counts_epochs_from_0() -> None:
    line = "Epoch 1/9 ━━╸━━ {}/100 0:00:{} • 0:00:28 2.50it/s v_num: 0 train_step_loss: 1.559  \n"
    assert brief((line.format(0, "00") + line.format(60, "24")).encode()) == [
        ("step_time", 0.4, "per_rank", 160, None),
        ("loss", 1.559, "per_rank", 160, None),
    ]


def test_loop_of_ones_own_counts_epochs_from_1() -> None:
    text = b"Epoch 1/20:  50%|5| 20/40 [00:20<00:20,  1.00it/s, loss=0.6, lr=0.001]\n"
    assert brief(text) == [
        ("step_time", 1, "per_rank", 20, None),
        ("loss", 0.6, "per_rank", 20, None),
        ("learning_rate", 0.001, "per_rank", 20, None),
    ]


@pytest.mark.parametrize(
    "line",
    [
        b"Validation DataLoader 0:  50%|5| 5/10 [00:05<00:05,  1.25it/s]",
        b"Epoch 1: loss 2.0, 3.1it/s",
        b"Validation: 1it [00:04,  4.36s/it]",
        b"Epoch 0:  50%|5| 5/10 [00:05<00:05,  1.25it",
    ],
)
def test_lines_that_are_no_bar_of_training(line: bytes) -> None:
    assert {scope for _, _, scope, *_ in brief(line)} <= {"unknown"}


def test_table_of_metrics() -> None:
    census = ParseStats()
    found = list(collect("run", [LOGS / "lightning/metrics.csv"], census=census))
    assert [(r.metric, r.value, r.scope, r.step) for r in found] == [
        ("learning_rate", 0.001, "global", 49),
        ("loss", 2.5, "per_rank", 49),
        ("step_time", 0.25, "per_rank", 49),
        ("tflops", 2, "per_gpu", 49),
        ("mfu", 0.25, "per_gpu", 49),
        ("samples_per_second", 128, "per_gpu", 49),
        ("loss", 2.25, "per_rank", 99),
        ("step_time", 0.2, "per_rank", 99),
        ("samples_per_second", 160, "per_gpu", 99),
        ("accuracy", 0.5, "global", 99),
    ]
    assert {record.parser for record in found} == {"metrics_csv"}
    assert sum(census.damaged.values()) == 1, "the row that was not written to its end"


def test_table_ends_where_other_text_begins() -> None:
    text = b"epoch,step,train_loss\n0,9,2.5\ndone, 1,2,3\n0,19,2.25\n"
    assert values(text, "loss") == [2.5]


def test_text_with_commas_is_no_head_of_a_table() -> None:
    assert parse(b"each epoch, we step, then log\n1,2,3\n", "metrics_csv") == []
    assert parse(b"epoch,loss\n1,2\n", "metrics_csv") == []


def test_summary_of_timm_counts_in_epochs() -> None:
    text = b"epoch,train_loss,eval_loss,eval_top1,eval_top5,lr\n0,6.5,6.25,12.5,50.0,0.001\n"
    assert brief(text) == [
        ("loss", 6.5, "per_rank", 0, None),
        ("accuracy", 0.125, "global", 0, None),
        ("learning_rate", 0.001, "global", 0, None),
    ]


NEMO_1 = (
    "Epoch 0: :  {p}%|##| {n}/200000 [06:19<07:13, v_num=, reduced_train_loss={loss}, "
    "global_step={step}, consumed_samples=12288.0, train_step_timing in s={time}{rest}]\n"
)


def nemo(n: int, step: str, time: str, rest: str = "") -> bytes:
    return NEMO_1.format(p=n // 2000, n=n, loss="11.50", step=step, time=time, rest=rest).encode()


def test_nemo_1_is_no_mere_lightning_bar() -> None:
    text = nemo(7, "6.000", "4.50") + nemo(7, "6.000", "4.50", ", val_loss=2.0")
    assert brief(text) == [
        ("step_time", 4.5, "global", 6, None),
        ("loss", 11.5, "global", 6, None),
    ]


def test_nemo_bar_without_timing_shows_its_own_rate() -> None:
    text = (
        b"Epoch 0:   5%|5| 3/60 [03:00<57:00,  0.02it/s, v_num=8-06, reduced_train_loss=6.500, "
        b"lr=2.5e-5, global_step=2.000, throughput=0.125, gradient_norm=8.500]\n"
    )
    assert brief(text) == [
        ("step_time", 60, "global", 2, None),
        ("loss", 6.5, "global", 2, None),
        ("learning_rate", 2.5e-5, "global", 2, None),
        ("grad_norm", 8.5, "global", 2, None),
    ]


def test_nemo_timing_is_better_than_the_rate_of_its_bar() -> None:
    text = nemo(7, "6.000", "4.50").replace(b"v_num=,", b" 4.90s/it, v_num=,")
    assert values(text, "step_time") == [4.5]


def test_nemo_1_rounds_large_steps() -> None:
    text = nemo(123_456, "1.23e+5", "4.50") + nemo(123_457, "1.23e+5", "4.60")
    steps: list[Brief] = [hit for hit in brief(text) if hit[0] == "step_time"]
    assert [(value, step) for _, value, _, step, _ in steps] == [(4.5, 123_456), (4.6, 123_457)]


def test_nemo_2() -> None:
    text = (
        b"[default7]:Training epoch 1, iteration 3/99 | lr: 1.5e-05 | global_batch_size: 128 | "
        b"global_step: 103 | peak_memory_usage: 8589934592 | memory_allocated: 4294967296 | "
        b"reduced_train_loss: 6.25 | train_step_timing in s: 12.5 | tokens_per_sec_per_gpu: "
        b"1.073e+04 | TFLOPS_per_GPU: 512.5 | consumed_samples: 12544 | val_loss: 2.8\n"
    )
    assert {(metric, value, scope) for metric, value, scope, *_ in brief(text)} == {
        ("learning_rate", 1.5e-5, "global"),
        ("global_batch_size", 128, "global"),
        ("memory", 8, "per_rank"),
        ("loss", 6.25, "global"),
        ("step_time", 12.5, "global"),
        ("tokens_per_second", 10_730, "per_gpu"),
        ("tflops", 512.5, "per_gpu"),
    }
    assert {hit[3] for hit in brief(text)} == {103}


def test_timing_of_mlperf_is_not_of_nemo() -> None:
    text = b':::MLLOG {"key": "tracked_stats", "value": {"train_step_timing in s": 0.5}}\n'
    assert parse(text, "nemo") == []


def test_nemo_bar_that_is_cut_is_counted() -> None:
    census = ParseStats()
    assert parse(nemo(7, "6.000", "4.50")[:90] + b"\n", "nemo", census=census) == []
    assert sum(census.damaged.values()) == 1


def test_a_history_of_wandb_counts_in_steps() -> None:
    text = b"_step,_runtime,train/loss,train/step_time,train/tokens_per_sec\n10,1.5,2.5,0.25,4096\n"
    assert brief(text) == [
        ("loss", 2.5, "per_rank", 10, None),
        ("step_time", 0.25, "per_rank", 10, None),
        ("tokens_per_second", 4096, "unknown", 10, None),
    ]


def test_a_history_without_a_known_column_is_none() -> None:
    assert parse(b"_step,_runtime,f1\n10,1.5,0.5\n", "metrics_csv") == []
