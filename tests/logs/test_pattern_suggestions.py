"""Lines that no parser reads, and the patterns that are offered for them."""

import gzip
from pathlib import Path

import pytest
from hypothesis import given, settings, strategies as st

from hpc_train.logs.formats.base import Hit
from hpc_train.logs.formats.pattern import UserPattern, own_patterns
from hpc_train.logs.line import Line
from hpc_train.logs.pattern_suggestions import suggested_for, suggestions

LINES = [
    ("Epoch 3 | t=12.1 | ips 3344", {"epoch_time": 12.1, "samples_per_second": 3344}),
    ("time: 12.3", {"step_time": 12.3}),
    ("Epoch 1/5 - loss: 1.0 - acc: 0.80 - 12.5s", {"epoch_time": 12.5, "loss": 1, "accuracy": 0.8}),
    ("step 5 | 0.25 | 51 ms", {"step_time": 0.051}),
    ("step 100 took 3 s", {"step_time": 3}),
    ("loss=0.5 acc=0.91 speed 1,234", {"samples_per_second": 1234, "loss": 0.5, "accuracy": 0.91}),
    ("<7> fwd+bwd cost 50.2 ms, tps 1,230", {"step_time": 0.0502, "tokens_per_second": 1230}),
    ("epoch 1 finished in 2 min", {"epoch_time": 120}),
    ("2024-01-01 12:00:00 INFO avg_batch_time 0.123", {"step_time": 0.123}),
    ("throughput: 4.5e3", {"samples_per_second": 4500}),
]


@pytest.mark.parametrize(("text", "values"), LINES)
def test_an_offered_option_reads_the_offered_value(text: str, values: dict[str, float]) -> None:
    found = suggestions([b"nothing here", text.encode()])
    assert {one.metric: one.value for one in found} == pytest.approx(values)
    assert {(one.line, one.text) for one in found} == {(2, text)}
    for one in found:
        (pattern,) = own_patterns([one.option], "per_rank")
        (hit,) = UserPattern(pattern).read(Line(text.encode()))
        assert isinstance(hit, Hit)
        assert hit.metric == one.metric
        assert hit.value == pytest.approx(values[one.metric])


@pytest.mark.parametrize(
    "text",
    [
        "", "done", "total time: 12 s", "0.53 sec elapsed", "elapsed: 12", "acc=91", "speed 0",
        "loaded in: 3.5 s data", "12 s", "val time 3 s", "ETA: 12 s", "1" * 5000, "time: x",
    ],
)  # fmt: skip
def test_no_offer(text: str) -> None:
    assert suggestions([text.encode()]) == []


def test_a_number_in_a_recurring_line_may_be_the_time_of_a_step() -> None:
    lines = [
        f"round {n}: lr 0.1, whole thing needed 8.{n} zork, err=2.{n}".encode() for n in (1, 2, 3)
    ]
    (one,) = suggestions([b"some 9.5", *lines])
    assert (one.metric, one.value, one.line) == ("step_time", 8.1, 2)
    assert suggestions(lines[:2]) == []


def test_the_most_frequent_form_is_offered() -> None:
    lines = [b"first took 9 s", *[f"batch {n} cost: {n} ms".encode() for n in range(1, 9)]]
    (one,) = suggestions(lines)
    assert one.line == 2
    assert one.value == pytest.approx(0.001)


@settings(max_examples=60, derandomize=True, deadline=None)
@given(st.text("=:,.()[]{}+*?\\^$|'\"0123456789 \n\r\tab\x07é", max_size=40))
def test_any_line_gives_valid_options(noise: str) -> None:
    for one in suggestions([f"{noise} took 3.5 s {noise} loss: 1,234 ips 5".encode()]):
        (pattern,) = own_patterns([one.option], "per_rank")
        (hit,) = UserPattern(pattern).read(Line(one.text.encode()))
        assert isinstance(hit, Hit)
        assert hit.value == pytest.approx(one.value)


def test_the_first_log_with_an_offer_is_used(tmp_path: Path) -> None:
    empty, packed, gone = (tmp_path / name for name in ("empty", "a.log.gz", "gone"))
    empty.touch()
    packed.write_bytes(gzip.compress(b"time: 12.3\n" * 5_000, mtime=0))
    found = suggested_for([gone, empty, packed])
    assert found is not None
    assert (found[0], found[1][0].option) == (packed, r"step_time=time: ([-+\d.e]+)")
    assert suggested_for([gone, empty]) is None


def test_an_offer_is_one_line_for_a_shell() -> None:
    (one,) = suggestions([b"it's \x1b[31mred\x07 took 3 ms"])
    assert "\x07" not in one.words
    assert "\n" not in one.words
    assert one.words.startswith("if \"it's ")
    assert "is step_time = 0.003 s: --pattern 'step_time[ms]=" in one.words


def test_a_rate_may_be_that_of_the_job() -> None:
    rate, time = suggestions([b"throughput: 4033"])[0], suggestions([b"took 3 ms here"])[0]
    assert rate.words.endswith(" (of the whole job: --scope global)")
    assert "--scope" not in time.words
