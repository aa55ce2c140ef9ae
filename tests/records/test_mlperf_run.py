"""MLPerf logs of all rounds: what counts once, what does not count, and what is no number."""

from __future__ import annotations

from itertools import islice
from pathlib import Path

import pytest

from hpc_train.errors import LogParseError
from hpc_train.records.collect import collect
from hpc_train.records.mlperf_run import mlperf_run, scaling_factor
from hpc_train.records.parse_stats import ParseStats
from hpc_train.records.parsers.mlperf import events_in
from hpc_train.records.parsing.log_parser import Unreadable
from tests.records.parse_text import parse, values

LOGS = Path(__file__).parents[1] / "logs" / "mlperf"


def line(key: str, value: str = "null", metadata: str = "{}", ms: int = 1000) -> bytes:
    return (
        f':::MLLOG {{"namespace": "", "time_ms": {ms}, "event_type": "X", "key": "{key}", '
        f'"value": {value}, "metadata": {metadata}}}\n'
    ).encode()


def test_what_several_ranks_print_counts_once() -> None:
    census = ParseStats()
    records = list(collect("r", [LOGS / "doubled.log"], "mlperf", census=census))
    assert [(r.metric, r.value, r.scope, r.step, r.variant) for r in records] == [
        ("condition", 1.0, "global", None, "model=llama2_70b_lora"),
        ("global_batch_size", 8.0, "global", None, ""),
        ("samples_per_second", 2.5, "global", 10, ""),
        ("step_time", 3.2, "global", 10, ""),
        ("loss", 1.25, "global", 10, ""),
        ("loss", 0.93, "global", 10, "eval"),
        ("time_to_train", 120.0, "global", None, ""),
    ]
    # The second event of the line is cut.
    assert sum(census.damaged.values()) == 1


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("first_round.log", [("condition", 1.0), ("accuracy", 0.31), ("time_to_train", 3600.25)]),
        (
            "second_round.log",
            [("global_batch_size", 4096.0), ("accuracy", 0.5), ("time_to_train", 500.5)],
        ),
    ],
)
def test_old_rounds(name: str, expected: list[tuple[str, float]]) -> None:
    records = collect("r", [LOGS / name], "mlperf")
    assert [(record.metric, record.value) for record in records] == expected


@pytest.mark.parametrize("end", ['{"status": "aborted"}', '{"success": false}'])
def test_a_failed_run_has_no_time_to_train(end: str) -> None:
    text = line("run_start") + line("run_stop", metadata=end, ms=9000)
    assert values(text, "time_to_train", "mlperf") == []


def test_a_run_without_its_start_has_no_time() -> None:
    assert values(line("run_stop", metadata='{"status": "success"}'), "time_to_train") == []


def test_rates_of_gpt3_are_tokens_and_its_steps_are_counted_in_them() -> None:
    text = (
        line("submission_benchmark", '"gpt3"')
        + line("global_batch_size", "4")
        + line("max_sequence_length", "16")
        + line("tracked_stats", '{"train_step_timing": 11.5}', '{"step": 192}')
        + line("tracked_stats", '{"throughput": 345.0}', '{"step": 192}')
        + line("eval_accuracy", "2.7", '{"epoch_num": 192}')
    )
    found = [(hit.metric, hit.value, hit.step) for _, hit, _ in parse(text, "mlperf")]
    assert found == [
        ("condition", 1.0, None),
        ("global_batch_size", 4.0, None),
        ("step_time", 11.5, 3),
        ("tokens_per_second", 345.0, 3),
        ("loss", 2.7, 3),
    ]


def test_losses_of_their_own_and_times_of_a_step() -> None:
    text = (
        line("global_batch_size", "8")
        + line("train_loss", "2.5", '{"samples_count": 16, "lr": 0.00022}')
        + line("tracked_stats", '{"train_step_time": 0.25, "reward": 0.5}', '{"step": 24}')
    )
    found = [(hit.metric, hit.value, hit.step) for _, hit, _ in parse(text, "mlperf")]
    assert found[1:] == [("loss", 2.5, 2), ("step_time", 0.25, 3)]


def test_a_quality_that_is_neither_accuracy_nor_loss_is_left_out() -> None:
    named = line("submission_benchmark", '"stable_diffusion"')
    (said,) = parse(named + line("eval_accuracy", "0.16"), "mlperf")
    assert said[1].metric == "condition"
    assert parse(line("eval_accuracy", "25.1"), "mlperf") == []


@pytest.mark.parametrize(
    "text",
    [
        b":::MLLOG {\n",
        b':::MLLOG {"time_ms": NaN, "key": "run_start"}\n',
        b':::MLLOG {"time_ms": 1' + b"0" * 400 + b', "key": "run_stop", "value": null}\n',
        b":::MLLOG {" + b'"a": [' * 20_000 + b"\n",
        b':::MLLOG {"key": ["x"], "time_ms": 1}\n',
        b':::MLL 1.0 run_start: {"value"\n',
    ],
)
def test_damaged_events_are_counted(text: bytes) -> None:
    census = ParseStats()
    assert parse(text, "mlperf", census=census) == []
    assert census.damaged["log"] == 1


def test_huge_and_odd_values_state_nothing() -> None:
    text = (
        line("global_batch_size", "1e999")
        + line("global_batch_size", "1" + "0" * 400)
        + line("tracked_stats", '{"throughput": "fast"}')
        + line("tracked_stats", "[1]")
        + line("eval_accuracy", '"DEFERRED: 12"')
        + line("run_start", metadata="[]")
    )
    assert parse(text, "mlperf") == []


def test_the_run_has_its_words() -> None:
    run = mlperf_run(LOGS / "doubled.log")
    assert (run.benchmark, run.platform, run.status) == ("llama2_70b_lora", "2xBox", "success")
    assert (run.time_to_train_s, run.global_batch_size) == (120.0, 8)
    assert mlperf_run(LOGS / "first_round.log").benchmark == "resnet"


def test_a_run_that_does_not_stop_failed(tmp_path: Path) -> None:
    log = tmp_path / "result_0.txt"
    log.write_bytes(line("run_start"))
    run = mlperf_run(log)
    assert (run.status, run.time_to_train_s) == ("failed", None)


def test_scaling_factor_is_one_without_a_file(tmp_path: Path) -> None:
    assert scaling_factor(tmp_path) == 1.0
    file = tmp_path / "scaling.json"
    file.write_text('{"scaling_factor": 1.025}')
    assert scaling_factor(tmp_path) == 1.025


@pytest.mark.parametrize("text", ["{", "[]", '{"scaling_factor": "x"}', '{"scaling_factor": 0}'])
def test_a_damaged_scaling_file_is_named(tmp_path: Path, text: str) -> None:
    (tmp_path / "scaling.json").write_text(text)
    with pytest.raises(LogParseError, match=r"scaling\.json"):
        scaling_factor(tmp_path)


def test_a_step_is_taken_where_it_is_clear_what_it_counts() -> None:
    text = line("global_batch_size", "2048") + b"".join(
        line("tracked_stats", '{"throughput": 5.0}', where)
        for where in ('{"epoch": 1, "step": 58}', '{"step": 1}', '{"step": 4096}')
    )
    steps = [hit.step for _, hit, _ in parse(text, "mlperf") if hit.metric != "global_batch_size"]
    assert steps == [58, None, 2]


def test_the_first_end_counts(tmp_path: Path) -> None:
    log = tmp_path / "result_0.txt"
    ends = (line("run_stop", metadata=f'{{"status": "{word}"}}') for word in ("success", "aborted"))
    log.write_bytes(line("run_start") + b"".join(ends))
    assert mlperf_run(log).status == "success"


@pytest.mark.parametrize(
    ("platform", "gpus"),
    [
        ("8xNVIDIA DGX H100", [64.0]),
        ("2xXE8545x4A100-SXM-40GB", [8.0]),
        ("1xR750xax4A100-PCIE-80GB", [4.0]),
        # Older DGX machines had 8 or 16, and other names say nothing.
        ("4xDGX-2H", []),
        ("1xAS-A126GS-TNBR", []),
        ("2xSUBMISSION_PLATFORM_PLACEHOLDER", []),
    ],
)
def test_gpus_of_a_platform_that_names_them(platform: str, gpus: list[float]) -> None:
    named = line("submission_platform", f'"{platform}"')
    assert values(named * 2, "world_size", "mlperf")[:1] == gpus


@pytest.mark.parametrize(
    "counts", ['"2","accelerators_per_node":"8"', '2,"accelerators_per_node":8']
)
def test_gpus_of_a_system_that_is_described(counts: str) -> None:
    described = f':::SYSJSON {{"submitter":"ours","number_of_nodes":{counts}}} \n'.encode()
    assert values(described, "world_size", "mlperf") == [16]


def test_gpus_of_a_system_without_numbers_are_not_known() -> None:
    empty = b':::SYSJSON {"number_of_nodes":"","accelerators_per_node":"N/A"}\n'
    assert values(empty + b":::SYSJSON {cut\n", "world_size", "mlperf") == []


def test_ranks_that_a_run_uses_are_more_than_the_name_of_its_machine() -> None:
    used, named = line("number_of_ranks", "4"), line("submission_platform", '"1xDGX A100"')
    assert values(used + named, "world_size", "mlperf") == [4]
    assert values(named + used, "world_size", "mlperf")[-1] == 4


def test_broken_events_without_end_are_given_up() -> None:
    found = list(islice(events_in(":::MLLOG {" * 8000), 200))
    assert len(found) < 100
    assert all(isinstance(event, Unreadable) for event in found)


def test_statistics_of_maskrcnn_are_means_since_the_start() -> None:
    line = (
        ':::MLLOG {"namespace": "", "time_ms": 1, "event_type": "POINT_IN_TIME", '
        '"key": "tracked_stats", "value": {"time": 0.16, "loss": 0.75, "loss_rpn_box_reg": 0.06, '
        '"throughput": %s}, "metadata": {%s}}\n'
    )
    text = line % ("596.8", '"step": 18250') + line % ("596.9", "") + line % ("595.8", "")
    found = [(hit.metric, hit.variant) for _, hit, _ in parse(text.encode(), "mlperf")]
    assert set(found) == {(name, "running_average") for name in ("samples_per_second", "loss")}
