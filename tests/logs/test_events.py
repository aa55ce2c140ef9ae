"""`@hpct` lines: the four kinds of event, free ones, damaged ones."""

import pytest

from hpc_train.logs.read_log import ParseStats
from tests.logs.parse_text import Brief, brief, parse


def hits(text: bytes, rank: int | None = None) -> list[Brief]:
    return brief(text, "events", rank=rank)


def unreadable(text: bytes) -> int:
    census = ParseStats()
    parse(text, "events", census=census)
    return census.damaged["log"]


def test_start_gives_the_numbers_of_the_run() -> None:
    line = (
        b'@hpct {"v":1,"event":"start","rank":0,"world_size":4,"global_batch_size":256,'
        b'"batch_size":64,"learning_rate":0.1,"seed":7,"threads":2,"backend":"gloo","step":9}\n'
    )
    assert hits(line) == [
        ("world_size", 4, "global", None, 0),
        ("global_batch_size", 256, "global", None, 0),
        ("batch_size", 64, "global", None, 0),
        ("learning_rate", 0.1, "global", None, 0),
        ("seed", 7, "global", None, 0),
        ("threads", 2, "global", None, 0),
    ]


def test_step_is_per_rank() -> None:
    line = (
        b'@hpct {"v":1,"event":"step","rank":3,"epoch":2,"step":17,"step_time":0.25,'
        b'"samples":64,"loss":1.5}\n'
    )
    assert hits(line) == [
        ("step_time", 0.25, "per_rank", 17, 3),
        ("samples", 64, "per_rank", 17, 3),
        ("loss", 1.5, "per_rank", 17, 3),
    ]


def test_epoch_is_global_and_counts_as_the_step() -> None:
    line = b'@hpct {"v":1,"event":"epoch","rank":0,"epoch":2,"epoch_time":4.5,"loss":0.7}\n'
    assert hits(line) == [("epoch_time", 4.5, "global", 2, 0), ("loss", 0.7, "global", 2, 0)]


def test_free_event_of_any_script() -> None:
    assert hits(b'@hpct {"step": 10, "step_time": 0.12, "loss": 2.0, "mood": 5}') == [
        ("step_time", 0.12, "per_rank", 10, None),
        ("loss", 2.0, "global", 10, None),
    ]


def test_scope_can_be_stated_and_nonsense_is_ignored() -> None:
    assert hits(b'@hpct {"tflops": 9, "scope": "per_gpu"}')[0][2] == "per_gpu"
    assert hits(b'@hpct {"tflops": 9, "scope": "galactic"}')[0][2] == "global"
    assert hits(b'@hpct {"tflops": 9, "scope": ["global"]}')[0][2] == "global"


@pytest.mark.parametrize(
    "value",
    [b"null", b'"0.5"', b"true", b"NaN", b"-Infinity", b"1e999", b"[1]", b"1" + b"0" * 400],
)
def test_what_is_no_finite_number_is_left_out(value: bytes) -> None:
    line = b'@hpct {"step":1,"loss":' + value + b',"step_time":2}\n'
    assert hits(line) == [("step_time", 2, "per_rank", 1, None)]


def test_rank_in_the_event_wins_over_prefix_and_file() -> None:
    assert hits(b'5: @hpct {"rank":2,"loss":1}', rank=7)[0][4] == 2
    assert hits(b'5: @hpct {"loss":1}', rank=7)[0][4] == 5
    assert hits(b'@hpct {"loss":1}', rank=7)[0][4] == 7


def test_several_events_in_one_line_keep_their_own_rank() -> None:
    text = b'0: @hpct {"loss":1}1: @hpct {"loss":2}@hpct {"loss":3} tail\n'
    assert [(value, rank) for _, value, _, _, rank in hits(text)] == [(1, 0), (2, 1), (3, None)]


def test_event_written_into_another_one_is_still_found() -> None:
    text = b'@hpct {"event":"st@hpct {"rank":1,"loss":2}\nep","loss":1}\n'
    assert hits(text) == [("loss", 2, "global", None, 1)]
    assert unreadable(text) == 1


@pytest.mark.parametrize(
    "text",
    [b'@hpct {"loss": 1', b'@hpct {"loss": 1\n', b"@hpct {", b"@hpct {loss: 1}", b"@hpct {]}"],
)
def test_cut_or_malformed_event_is_counted(text: bytes) -> None:
    assert hits(text) == []
    assert unreadable(text) == 1


def test_braces_and_at_signs_in_strings_and_nested_values() -> None:
    text = b'@hpct {"why":"{a@b} @hpct {\\"x\\"","loss":1,"more":{"loss":[2]}}@hpct {"loss":3}\n'
    assert [value for _, value, *_ in hits(text)] == [1, 3]
    assert unreadable(text) == 0


def test_invalid_utf8_nul_and_crlf() -> None:
    text = b'\x00\xff\xfe@hpct {"host":"\xff{","loss":1}\r\n\x00@hpct {"loss":2}\r\n'
    assert [value for _, value, *_ in hits(text)] == [1, 2]


def stated(text: bytes) -> list[str]:
    return [hit.variant for _, hit, _ in parse(text, "events") if hit.metric == "condition"]


def test_what_a_run_says_of_itself_is_a_condition_each() -> None:
    line = b'@hpct {"event":"conditions","conditions":{"torch":"2.13.0","layers":12,"amp":true}}\n'
    assert stated(line) == ["torch=2.13.0", "layers=12", "amp=true"]
    assert brief(line, "events", rank=0)[0] == ("condition", 1, "global", None, 0)


def test_hostile_conditions_are_cut_cleaned_or_left_out() -> None:
    longest = b'@hpct {"conditions":{"gpu":"' + b"x" * 900 + b'"}}\n'
    assert stated(longest) == ["gpu=" + "x" * 200]
    many = ",".join(f'"c{number}":"v"' for number in range(80))
    assert len(stated(f'@hpct {{"conditions":{{{many}}}}}\n'.encode())) == 50
    assert stated(
        b'@hpct {"conditions":{"gpu":"a\\u001b[31m\\nb","a=b":"c","x":{},"y":null}}\n'
    ) == ["gpu=a[31m b"]
    secrets = b'"HF_TOKEN":"abcdefgh1234","who":"hf_ABCDEFGHIJKLMNOPQRSTUVWX"'
    assert stated(b'@hpct {"conditions":{' + secrets + b"}}\n") == []
    assert stated(b'@hpct {"condition":3,"conditions":[1]}\n') == []


def test_bandwidths_of_an_event_keep_its_message_size() -> None:
    text = b'@hpct {"event": "smoke", "message_size": 1024, "busbw": 9.5, "step_time": 0.1}\n'
    found = {hit.metric: hit.message_size for _, hit, _ in parse(text)}
    assert found == {"message_size": None, "busbw": 1024, "step_time": None}
