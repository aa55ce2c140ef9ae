"""MXNet, TensorFlow, Horovod: units, scopes, steps and forms of several versions."""

from __future__ import annotations

import pytest

from hpc_train.records.parse_stats import ParseStats
from tests.records.parse_text import brief, parse, values

SPEED = b"Node[0] Epoch[%d] Batch [%d-%d]\tSpeed: %d.50 samples/sec\taccuracy=nan\n"


def test_one_mxnet_node_prints_for_all_and_steps_count_on() -> None:
    text = SPEED % (0, 0, 20, 7) + SPEED % (0, 20, 40, 8) + SPEED % (1, 0, 20, 9)
    found = [(hit.value, hit.scope, hit.step, hit.steps) for _, hit, _ in parse(text)]
    assert found == [
        (7.5, "global", 20, 20),
        (8.5, "global", 40, 20),
        (9.5, "global", 60, 20),
    ]


def test_several_mxnet_nodes_print_each_for_itself() -> None:
    text = (
        b"Node[1] Epoch[0] Batch [50]\tSpeed: 10.00 samples/sec\tTrain-accuracy=0.1\n"
        b"Node[0] Epoch[0] Batch [50]\tSpeed: 11.00 samples/sec\tTrain-cross-entropy=6.5\n"
    )
    assert brief(text, "mxnet_speedometer") == [
        ("samples_per_second", 10.0, "per_rank", 50, 1),
        ("samples_per_second", 11.0, "per_rank", 50, 0),
        ("loss", 6.5, "per_rank", 50, 0),
    ]


@pytest.mark.parametrize(
    "text",
    [
        b"Node[0] start with Namespace(kv_store='dist_sync_device')\n" + SPEED % (0, 0, 20, 7),
        (SPEED % (0, 0, 20, 7)).replace(b"Node[0] ", b""),
        b"Iter[0] Batch [20]\tSpeed: 7.50 samples/sec\n",
    ],
)
def test_an_mxnet_worker_on_its_own(text: bytes) -> None:
    assert [hit.scope for _, hit, _ in parse(text)] == ["per_rank"]


def test_old_mxnet_repeats_its_rate_for_each_metric() -> None:
    line = b"INFO:root:Epoch[0] Batch [%d]\tSpeed: %b samples/sec\tTrain-%b=0.25\n"
    both = (b"accuracy", b"cross-entropy")
    text = b"".join(line % (50 * n, b"180.5", name) for n in (1, 2) for name in both)
    assert brief(text) == [
        ("samples_per_second", 180.5, "per_rank", 50, None),
        ("loss", 0.25, "per_rank", 50, None),
        ("samples_per_second", 180.5, "per_rank", 100, None),
        ("loss", 0.25, "per_rank", 100, None),
    ]


def test_mxnet_workers_without_a_name_are_at_the_same_step() -> None:
    line = b"INFO:root:Epoch[0] Batch [%d]  Speed: %b samples/sec     Train-accuracy=0.5\n"
    text = b"".join(line % (n, rate) for n in (50, 100) for rate in (b"10.5", b"10.5", b"9.5"))
    found = [(hit.value, hit.step, hit.steps) for _, hit, _ in parse(text)]
    assert found == [(rate, n, 50) for n in (50, 100) for rate in (10.5, 10.5, 9.5)]


def test_mxnet_node_before_a_clock() -> None:
    text = b"Node[2] 06:49:12 INFO:root:Epoch[5] Batch [40]\tSpeed: 160.50 samples/sec\tP=8.5\n"
    assert brief(text) == [("samples_per_second", 160.5, "per_rank", 40, 2)]


def test_gluon_ends_its_epochs() -> None:
    text = (
        b"INFO:root:[Epoch 1] training: accuracy=0.248027\n"
        b"INFO:root:[Epoch 1] time cost: 68.5\nINFO:root:[Epoch 1] validation: accuracy=0.25\n"
    )
    assert brief(text) == [
        ("epoch_time", 68.5, "per_rank", 2, None),
        ("accuracy", 0.25, "global", 2, None),
    ]


def test_mxnet_says_how_many_batches_a_rate_is_of() -> None:
    line = b"Node[0] Epoch[36] Batch [720-740]\tSpeed: 11154.51 samples/sec\taccuracy=0.001202\n"
    assert [(hit.step, hit.steps) for _, hit, _ in parse(line)] == [(740, 20)]


def test_gluon_states_fractions_or_percents() -> None:
    text = (
        b"INFO:root:[Epoch 0] training: accuracy=%s\n"
        b"INFO:root:[Epoch 0] validation: acc-top1=%s acc-top5=%s loss=2.5\n"
        b"INFO:root:[Epoch 1] validation: acc-top1=%s acc-top5=%s\n"
    )
    for shown, expected in (
        ((b"0.01", b"0.5", b"0.75", b"0.625", b"0.875"), [0.5, 0.625]),
        ((b"14.2", b"0.5", b"0.75", b"62.5", b"87.5"), [0.005, 0.625]),
        ((b"0.01", b"0.5", b"2.25", b"0.75", b"0.875"), [0.005, 0.0075]),
        ((b"0.01", b"93.5", b"99.25", b"100.0", b"100.0"), [0.935, 1.0]),
    ):
        assert values(text % shown, "accuracy") == expected


def test_mxnet_epochs_end_with_time_and_accuracy() -> None:
    text = b"x Node[0] Epoch[2] Time cost=105.8\nNode[0] Epoch[2] Validation-accuracy=0.31\n"
    assert brief(text) == [
        ("epoch_time", 105.8, "global", 3, 0),
        ("accuracy", 0.31, "per_rank", 3, 0),
    ]


def test_timehistory_gives_time_and_rate_of_a_step() -> None:
    text = (
        b"I0826 15:12:50.1 1 keras_utils.py:133] TimeHistory: 40.00 seconds, 320.00 "
        b"examples/second between steps 100 and 200\n"
    )
    found = [(h.metric, h.value, h.scope, h.step, h.steps) for _, h, _ in parse(text)]
    assert found == [
        ("step_time", 0.4, "global", 200, 100),
        ("samples_per_second", 320.0, "global", 200, 100),
    ]


@pytest.mark.parametrize(
    "text",
    [
        b"INFO BenchmarkMetric: {'global step':100, 'time_taken': 43.2,'examples_per_second': 30}",
        b"BenchmarkMetric: {'num_batches':100, 'time_taken': 43.2,'images_per_second': 30.0}",
        b"BenchmarkMetric: {m\t'global step':100, 'time_taken': 4.2,'examples_per_second': 30.0, }",
    ],
)
def test_old_timehistory(text: bytes) -> None:
    assert brief(text) == [("samples_per_second", 30.0, "global", 100, None)]


def test_a_cut_timehistory_is_counted() -> None:
    census = ParseStats()
    assert parse(b"TimeHistory: 40.00 seconds, 320.00 exam\n", census=census) == []
    assert census.damaged["log"] == 1


def test_horovod_states_rates_per_gpu_and_of_all_with_intervals() -> None:
    text = (
        b"[1,0]<stdout>:Iter #9: 1784.1 img/sec per GPU\n"
        b"[1,0]<stdout>:Img/sec per GPU: 1785.2 +-3.1\n"
        b"[1,0]<stdout>:Total img/sec on 8 GPU(s): 14281.2 +-25.0\n"
    )
    found = [(h.metric, h.value, h.scope, h.step, h.variant) for _, h, _ in parse(text)]
    assert found == [
        ("samples_per_second", 1784.1, "per_gpu", 10, ""),
        ("samples_per_second", 3.1, "per_gpu", None, "ci"),
        ("samples_per_second", 1785.2, "per_gpu", None, ""),
        ("world_size", 8.0, "global", None, ""),
        ("samples_per_second", 25.0, "global", None, "ci"),
        ("samples_per_second", 14281.2, "global", None, ""),
    ]


def test_horovod_on_cpus_and_without_interval() -> None:
    assert values(b"Total img/sec on 2 CPU(s): 30.5\n", "samples_per_second") == [30.5]
    assert values(b"Iter #0: 15.2 img/sec per CPU\n", "samples_per_second") == [15.2]


def test_tf_cnn_benchmarks() -> None:
    text = (
        b"Step\tImg/sec\ttotal_loss\n1\timages/sec: 57.5 +/- 0.0 (jitter = 0.0)\t8.108\n"
        b"20      images/sec: 58.5 +/- 0.1 (jitter = 0.1)  8.042\n"
        + b"total images/sec: 234.50\n"
        * 2
    )
    found = [(h.value, h.scope, h.step, h.steps, h.once) for _, h, _ in parse(text)]
    total = (234.5, "global", None, 1, "total")
    assert found == [(57.5, "per_rank", 1, 1, ""), (58.5, "per_rank", 20, 20, ""), total, total]
    assert parse(b"total images/sec: 23\n") == []


def test_a_cut_horovod_line_is_counted() -> None:
    census = ParseStats()
    assert parse(b"Iter #3: 17\n", census=census) == []
    assert census.damaged["log"] == 1


@pytest.mark.parametrize(
    "text",
    [
        b"Iter #1: nan img/sec per GPU",
        b"Img/sec per GPU: 1e999 +-1e999",
        b"TimeHistory: 1e999 seconds, 1e999 examples/second between steps 5 and 6",
        b"TimeHistory: 1.0 seconds, 1.0 examples/second between steps 6 and 6",
        b"Epoch[0] Batch [5]\tSpeed: " + b"9" * 400 + b" samples/sec",
        b"Epoch[0] Batch [" + b"9" * 400 + b"]\tSpeed: 1.0 samples/sec",
        b"Time taken for epoch 1 is " + b"9" * 400 + b" sec",
        b"DLL 2024-05-06 07:08:09.1 - (0, 1) train.loss : nan None",
        b'DLLL {"type": "LOG", "step": [1' + b"0" * 400 + b', 1], "data": {"loss": NaN}}',
    ],
)
def test_no_number_states_nothing(text: bytes) -> None:
    assert parse(text + b"\n") == []


@pytest.mark.parametrize(
    "text",
    [
        "Iter #1: {}",
        "Total img/sec on 8 GPU(s): {}",
        "Epoch[0] Batch [5]\tSpeed: {}",
        "TimeHistory: {} seconds",
        "Batch 1 Loss: {},",
        "Train samples {}",
        "DLL 2024-05-06 07:08:09.1 - (0, 1) loss : {}",
        ":::MLPv0.5.0 {}",
    ],
)
def test_a_long_run_of_digits_takes_no_longer(text: str) -> None:
    # Were the time quadratic in the length, this would take hours.
    assert parse(text.format("9" * 200_000).encode()) == []
