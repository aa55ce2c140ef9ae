"""JSON of nccl-tests: in one line as it is written, laid out again, cut, and of rccl-tests."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.logs.parse_text import parse

PLACE = {"time": 50.5, "alg_bw": 20.9, "bus_bw": 31.4, "nwrong": None}
RESULT = {
    "size": 1048576,
    "count": 262144,
    "type": "float",
    "redop": "sum",
    "root": "    -1",
    "out_of_place": PLACE,
    "out_of_place_per_iter": {"min_us": 49.0, "times_us": [1.0, 2.0] * 400, "time": 7.0},
    "in_place": {"cpu_time": 60.5, "alg_bw": "nan", "bus_bw": 25.0, "nwrong": 0.0},
    "actual_iterations": 20,
    "experiment_name": "",
}
FILE: dict[str, Any] = {
    "version": 2,
    "env": ['WORDS={"size":5,"time":3}'],
    "nccl_version": 22809,
    "config": {
        "nthreads": 1,
        "ngpus": 4,
        "devices": [{"rank": 0, "group": 0, "pid": 4}, {"rank": 4, "group": 0, "pid": 5}],
    },
    "results": [RESULT, RESULT | {"size": 2097152}],
    "out_of_bounds": {"count": 2, "okay": "false"},
    "average_bus_bandwidth": {"bandwidth": 28.2, "okay": "unchecked"},
    "end_time": "2026-03-04 05:06:07",
}
OF_ONE = [
    ("latency", "out_of_place", 50.5),
    ("algbw", "out_of_place", 20.9),
    ("busbw", "out_of_place", 31.4),
    ("latency", "in_place", 60.5),
    ("busbw", "in_place", 25.0),
]


@pytest.mark.parametrize("indent", [None, 2])
def test_file_states_its_results(indent: int | None) -> None:
    found = [hit for _, hit, _ in parse(json.dumps(FILE, indent=indent).encode())]
    assert [
        (hit.metric, hit.variant, hit.value) for hit in found if hit.message_size == 2097152
    ] == OF_ONE
    assert [(hit.metric, hit.variant, hit.value) for hit in found if not hit.message_size] == [
        ("world_size", "", 8.0),
        ("wrong_values", "", 2.0),
        ("busbw", "average", 28.2),
    ]
    assert len(found) == 2 * len(OF_ONE) + 3


def test_cut_file_states_what_is_whole() -> None:
    whole = json.dumps(FILE, separators=(",", ":"))
    for end in range(0, len(whole), 67):
        for _, hit, _ in parse(whole[:end].encode()):
            assert hit.value in {50.5, 20.9, 31.4, 60.5, 25.0, 8.0, 2.0, 28.2}


def test_record_of_rccl_tests() -> None:
    text = b'[{"size":1024,"type":"float","inPlace":1,"time":9.5,"algBw":1.5,"busBw":2.5}]'
    assert [(hit.metric, hit.variant, hit.value) for _, hit, _ in parse(text)] == [
        ("latency", "in_place", 9.5),
        ("algbw", "in_place", 1.5),
        ("busbw", "in_place", 2.5),
    ]


def test_only_ranks_of_one_group_talk_to_each_other() -> None:
    text = b"""{"nccl_version":22809,"ngpus":1,"devices":[{"rank":0,"group":0},{"rank":1,"group":1},
{"rank":2,"group":0},{"rank":3,"group":1}],"results":["""
    assert [(hit.metric, hit.value) for _, hit, _ in parse(text)] == [("world_size", 2.0)]


def test_values_behind_a_result_are_not_its_own() -> None:
    text = json.dumps([RESULT, {"in_place": {"time": 3.5}}]).encode()
    assert 3.5 not in [hit.value for _, hit, _ in parse(text)]


@pytest.mark.parametrize(
    "text", [b'{"nccl_version":1e999,"size":1e999,"time":1}', b'"alg_bw":1.0', b'"alg_bw":' * 9000]
)
def test_foreign_keys_state_nothing(text: bytes) -> None:
    assert parse(text) == []
