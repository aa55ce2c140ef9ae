"""verl: both ways to print numbers, throughput, learning rates, Ray's prefix."""

from __future__ import annotations

import pytest

from tests.records.parse_text import parse

LINE = (
    "step:3 - critic/returns/mean:0.003788670524954796 - response_length/max:128.0 - "
    "actor/pg_loss:-0.1253 - actor/grad_norm:0.5012 - perf/mfu/actor:0.3512 - actor/lr:1e-06 - "
    "perf/max_memory_reserved_gb:60.5012 - timing_s/gen:16.22749171219766 - "
    "timing_s/step:48.7025266494602 - timing_per_token_ms/gen:0.1701672753528414 - "
    "perf/total_num_tokens:159906 - perf/time_per_step:48.7025266494602 - "
    "perf/throughput:3283.320414789452"
)
Found = list[tuple[str, float, str, int | None, str]]


def found(text: str) -> Found:
    return [
        (hit.metric, hit.value, hit.scope, hit.step, hit.variant)
        for _, hit, _ in parse(text.encode())
    ]


@pytest.mark.parametrize(
    "prefix",
    ["", "(TaskRunner pid=3251) ", "\x1b[36m(main_task pid=7, ip=10.0.0.1)\x1b[0m ", "0: "],
)
def test_line(prefix: str) -> None:
    assert found(prefix + LINE) == [
        ("loss", -0.1253, "global", 3, "policy"),
        ("grad_norm", 0.5012, "global", 3, ""),
        ("mfu", 0.3512, "per_gpu", 3, "actor"),
        ("learning_rate", 1e-06, "global", 3, ""),
        ("memory", 60.5012, "per_rank", 3, "max_reserved"),
        ("step_time", 48.7025266494602, "global", 3, ""),
        ("tokens_per_second", 3283.320414789452, "per_gpu", 3, ""),
    ]


def test_older_name_of_the_utilisation() -> None:
    line = LINE.replace("perf/mfu/actor", "mfu/actor")
    assert ("mfu", 0.3512, "per_gpu", 3, "actor") in found(line)


def test_numbers_with_their_type() -> None:
    line = "step:3 - actor/grad_norm:np.float64(0.5012) - timing_s/step:48.703 - training/epoch:0"
    assert [row[:2] for row in found(line)] == [("grad_norm", 0.5012), ("step_time", 48.703)]


def test_learning_rate_of_three_decimals_is_lost() -> None:
    line = "step:3 - actor/lr:0.000 - actor/grad_norm:0.501 - timing_s/step:48.703"
    assert [row[0] for row in found(line)] == ["grad_norm", "step_time"]


def test_throughput_of_images_is_none_of_tokens() -> None:
    line = LINE.replace("perf/total_num_tokens", "perf/total_num_images")
    assert "tokens_per_second" not in [row[0] for row in found(line)]


def test_fine_tuning() -> None:
    line = "step:7 - train/loss:1.250 - train/lr(1e-3):0.010 - train/time(s):2.500"
    assert found(line) == [
        ("loss", 1.25, "global", 7, ""),
        ("learning_rate", 1e-05, "global", 7, ""),
        ("step_time", 2.5, "global", 7, ""),
    ]
    assert found("step:7 - val/loss:1.125 - val/x:1.0") == [
        ("loss", 1.125, "global", 7, "validation")
    ]


def test_cut_numbers_keep_three_decimals() -> None:
    whole = {row[0]: row[1] for row in found(LINE)}
    for length in range(len(LINE)):
        for name, value, *_ in found(LINE[:length]):
            assert value == pytest.approx(whole[name], abs=1e-3)


def test_bar_behind_it_is_another_line() -> None:
    bar = "Training Progress:   2%|#9   | 60/3499 [21:41:02<7621:31:21, 7978.33s/it]"
    rates = [row for row in found(f"{LINE}\r{bar}\n") if row[0] == "step_time"]
    assert rates[0][1] == 48.7025266494602
