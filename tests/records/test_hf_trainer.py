"""The Trainer's logs and files: what every node prints is one measurement."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpc_train.model.record import Record
from hpc_train.records.collect import collect
from hpc_train.records.parse_stats import ParseStats
from tests.records.parse_text import brief, parse, values

BANNER = b"***** Running training *****\n  Total optimization steps = 10\n"
LOGS = Path(__file__).parents[1] / "logs"


def records(*names: str) -> list[Record]:
    return list(collect("run", [LOGS / name for name in names]))


def of(found: list[Record], metric: str) -> list[tuple[float, int | None, int, str]]:
    return [(r.value, r.step, r.steps, r.variant) for r in found if r.metric == metric]


def test_log_of_two_nodes() -> None:
    found = records("hf_trainer/two_nodes.log")
    assert {record.parser for record in found} == {"hf_trainer", "tqdm"}
    assert of(found, "iteration_time") == [(1 / 3.9, 4, 1, "")], "that of the evaluation"
    assert of(found, "examples") == [(1280, None, 1, "")]
    assert of(found, "global_batch_size") == [(320, None, 1, "")]
    assert of(found, "parameters") == [(6_738_415_616, None, 1, "")]
    assert of(found, "step_time") == [
        (10, 1, 1, ""), (8.5, 2, 1, ""), (8.25, 4, 2, ""), (35.5 / 4, None, 4, "mean"),
    ]  # fmt: skip
    assert of(found, "loss") == [(2.5, 1, 1, "")]
    assert of(found, "learning_rate") == [(2e-5, 1, 1, ""), (1e-5, 2, 1, "")]
    assert of(found, "time_to_train") == [(35.5, None, 1, "")]
    assert of(found, "samples_per_second") == [(36.056, None, 1, "")]
    assert [value for value, *_ in of(found, "accuracy")] == [0.75, 0.7812]
    others = ("batch_size", "iteration_time", "not_finite")
    assert {r.scope for r in found if r.metric not in others} == {"global"}


def test_table_alone_states_the_summary() -> None:
    text = (
        b"[INFO|t.py:9] 2024-05-01 10:00:00,1 >>   train_runtime            = 1 day, 0:15:19.02\n"
    )
    assert brief(text) == [("time_to_train", 86_400 + 919.02, "global", None, None)]
    assert values(b"  train_runtime = 0:00:01\n", "time_to_train") == [1]


def test_unit_of_the_bar_flips() -> None:
    text = b" 10%|#  | 1/10 [00:02<00:18,  2.00s/it]\r 20%|#  | 2/10 [00:02<00:04,  2.00it/s]\n"
    assert values(BANNER + text, "step_time", "hf_trainer") == [2, 0.5]


@pytest.mark.parametrize(
    "line",
    [
        b"Loading shards:  50%|##  | 1/2 [00:01<00:01,  1.00s/it]",
        b"Map:  50%|##  | 500/1000 [00:01<00:01, 900.00 examples/s]",
        b" 50%|##  | 1/2 [00:01<00:01,  1.00s/it, loss=3]",
        b"  0%|    | 0/2 [00:00<?, ?it/s]",
        b"{'loss': 2.0, 'x': 1}",
        b"{'learning_rate': 1e-5, 'optimizer': 'adamw'}",
    ],
)
def test_lines_of_others(line: bytes) -> None:
    assert brief(line, "hf_trainer") == []


def test_bar_without_its_drawing_and_behind_one_that_stood_still() -> None:
    text = (
        b"  Total optimization steps = 2000\n"
        b"  4% 99/2000 [1:48:23<35:43:37, 60.00s/it]{'loss': 2.5, 'epoch': 0.04}\n"
        b"  0%|  | 0/2000 [00:00<?, ?it/s]  5%|# | 100/2000 [1:49:59<42:08:58, 70.00s/it]\n"
    )
    assert values(text, "step_time") == [60, 70]
    assert values(text, "loss") == [2.5]


def test_file_of_llama_factory() -> None:
    text = (
        b'{"current_steps": 10, "total_steps": 69, "loss": 5.5, "lr": 1.5e-05, "epoch": 0.45, '
        b'"percentage": 14.49, "elapsed_time": "0:10:55", "remaining_time": "1:04:27"}\n'
    )
    assert brief(text) == [
        ("loss", 5.5, "global", 10, None),
        ("learning_rate", 1.5e-5, "global", 10, None),
    ]


def test_banner_of_an_evaluation_is_not_that_of_the_training() -> None:
    text = (
        b"***** Running Evaluation *****\n  Num examples = 64\n"
        b"***** Running training *****\n  Num examples = 1,280\n"
    )
    assert values(text, "examples") == [1280]


def test_banner_behind_the_head_of_a_logger() -> None:
    text = (
        b"05/01/2024 10:00:00 - INFO - __main__ -   Num examples = 833\n"
        b"05/01/2024 10:00:00 - INFO - __main__ -   Total optimization steps = 15000\n"
    )
    assert brief(text) == [
        ("examples", 833, "global", None, None),
        ("steps", 15_000, "global", None, None),
    ]


def test_banner_says_which_bar_is_that_of_the_training() -> None:
    text = (
        b"  Total optimization steps = 10\n 33%|# | 1/3 [00:00<00:00,  9.00it/s]\n"
        b" 10%|# | 1/10 [00:02<00:18,  2.00s/it]\n"
    )
    assert values(text, "step_time", "hf_trainer") == [2]


def test_steps_that_share_a_rounded_epoch_all_count(tmp_path: Path) -> None:
    log = tmp_path / "run.out"
    log.write_text(
        "{'loss': 2.5, 'epoch': 0.0}\n{'loss': 2.25, 'epoch': 0.0}\n" * 2
        + "{'loss': 0.0, 'epoch': 0.1, 'global_step/max_steps': '8/9'}\n"
        + "{'loss': 0.0, 'epoch': 0.1, 'global_step/max_steps': '9/9'}\n"
    )
    assert [r.value for r in collect("run", [log])] == [2.5, 2.25, 0, 0]


def test_speed_of_swift_is_the_mean_since_the_start() -> None:
    text = (
        b"Train:  20%|# | 2/10 [00:04<00:18,  2.00s/it]"
        b"{'loss': 2.5, 'epoch': 0.1, 'global_step/max_steps': '2/10', 'train_speed(s/it)': 2.5}\n"
        b"Train:  30%|# | 3/10 [00:07<00:18,  3.00s/it]\n"
    )
    found = [(hit.value, hit.step, hit.variant) for _, hit, _ in parse(text, "hf_trainer")[1:]]
    assert found == [(2.5, 2, "running_average"), (3, 3, "")]


def test_keys_of_swift_name_the_step() -> None:
    text = (
        b"{'loss': '0.5', 'grad_norm': '0.75', 'learning_rate': '1e-05', 'epoch': '0.1', "
        b"'global_step/max_steps': '12/60', 'memory(GiB)': '14.5', 'train_speed(s/it)': '2.5'}\n"
        b'{"loss": 0.25, "learning_rate": 1e-05, "memory(GiB)": 14.5, "train_speed(iter/s)": 0.5, '
        b'"epoch": 0.2, "steps[global_step/max_steps]": "24/60"}\n'
    )
    found = brief(text)
    assert ("loss", 0.5, "global", 12, None) in found
    assert ("memory", 14.5, "per_rank", 12, None) in found
    assert [hit for hit in found if hit[0] == "step_time"] == [
        ("step_time", 2.5, "global", 12, None),
        ("step_time", 2, "global", 24, None),
    ]


def test_swift_on_megatron_counts_iterations() -> None:
    text = (
        b"{'loss': 0.5, 'grad_norm': 9.5, 'learning_rate': 1e-08, 'iteration': '5/1000', "
        b"'elapsed_time': '9m 40s', 'memory(GiB)': 204.5, 'train_speed(s/it)': 116.5}\n"
    )
    assert {(metric, value, step) for metric, value, _, step, _ in brief(text)} == {
        ("loss", 0.5, 5), ("grad_norm", 9.5, 5), ("learning_rate", 1e-8, 5),
        ("memory", 204.5, 5), ("step_time", 116.5, 5),
    }  # fmt: skip


def test_tokens_are_of_a_device_in_the_summary_and_of_all_beside_their_sum() -> None:
    text = (
        b"{'loss': 2.5, 'epoch': 2.0, 'num_input_tokens_seen': 4096, 'train_runtime': 2.0, "
        b"'train_tokens_per_second': 2048.0}\n"
        b"{'train_runtime': 4.0, 'train_samples_per_second': 8.0, 'train_steps_per_second': 1.0, "
        b"'train_tokens_per_second': 256.0, 'epoch': 3.0}\n"
    )
    found = brief(text)
    assert [hit[1:3] for hit in found if hit[0] == "tokens_per_second"] == [
        (2048, "global"), (256, "per_gpu"),
    ]  # fmt: skip
    assert [hit[1] for hit in found if hit[0] == "time_to_train"] == [4]


def test_dictionary_that_is_cut_is_counted() -> None:
    census = ParseStats()
    text = b"{'loss': 2.5, 'gra\n{'loss': 2.5, 'gr{'loss': 1.5, 'epoch': 1.0}\n"
    assert [hit.value for _, hit, _ in parse(text, census=census)] == [1.5]
    assert sum(census.damaged.values()) == 2
