"""Steps are timed by the clock of Lightning's bar, which shows whole seconds."""

from __future__ import annotations

from tests.records.parse_text import parse


def bar(epoch: int, done: int, clock: str, rate: str = "?it/s", total: int = 100) -> str:
    return f"Epoch {epoch}:  50%|5| {done}/{total} [{clock}<1:00,  {rate}, v_num=0]\n"


def timed(text: str) -> list[tuple[float, int | None, int]]:
    found = [hit for _, hit, _ in parse(text.encode()) if hit.metric == "step_time"]
    assert {hit.scope for hit in found} <= {"per_rank"}
    return [(round(hit.value, 6), hit.step, hit.steps) for hit in found]


def test_rate_of_a_bar_is_not_the_time_of_its_last_step() -> None:
    rows = [bar(0, 0, "00:00"), bar(0, 87, "01:01", "1.43it/s"), bar(0, 88, "09:08", "6.23s/it")]
    assert timed("".join(rows)) == [(round(61 / 87, 6), 87, 87), (487, 88, 1)]


def test_whole_seconds_are_put_together_until_they_are_enough() -> None:
    rows = [bar(0, n, f"00:{n * 3 // 2:02}", "1.5s/it") for n in range(40)]
    assert timed("".join(rows)) == [
        (1.5, 14, 14),
        (1.5, 28, 14),
    ], "what is left is less than 20 s"
    exact = 1.5
    assert all(abs(value - exact) * steps < 1 for value, _, steps in timed("".join(rows)))


def test_epoch_that_is_short_has_the_mean_that_lightning_prints() -> None:
    rows = [bar(0, 0, "00:00"), bar(0, 50, "00:04", "12.00it/s"), bar(0, 100, "00:08", "12.50it/s")]
    assert timed("".join(rows)) == [(0.08, 100, 100)]
    assert timed("".join(rows).replace(", v_num=0", "")) == [], "another loop's may be smoothed"
    assert timed("".join(rows).replace("12.50", "19.50")) == [], "not what the clock says"


def test_other_bars_interrupt_an_interval() -> None:
    rows = [
        *(bar(0, 0, "00:00"), bar(0, 50, "01:00", "1.2s/it")),
        "Validation DataLoader 0:  50%|5| 5/10 [05:00<00:05,  1.25it/s]\n",
        *(bar(0, 51, "06:01", "7.08s/it"), bar(0, 76, "06:26"), bar(0, 100, "06:50", "4.10s/it")),
    ]
    assert timed("".join(rows)) == [(1.2, 50, 50), (1, 76, 25), (1, 100, 24)]
    short = [bar(0, 0, "00:00"), rows[2], bar(0, 100, "00:08", "12.50it/s")]
    assert timed("".join(short)) == []


def test_bar_of_a_resumed_epoch_does_not_begin_at_0() -> None:
    rows = [bar(3, 60, "00:30", "3.00s/it"), bar(3, 70, "01:00", "3.00s/it")]
    assert timed("".join(rows)) == [(3, 370, 10)]


def test_ranks_have_clocks_of_their_own() -> None:
    rows = [f"{rank}: {bar(0, n, f'00:{n * 10}')}" for n in range(1, 5) for rank in (0, 1)]
    found = [(hit.value, hit.step, rank) for _, hit, rank in parse("".join(rows).encode())]
    assert found == [(10, 3, 0), (10, 3, 1)]


def test_clock_that_is_one_second_behind_is_that_of_the_same_bar() -> None:
    rows = [
        *(bar(0, 0, "00:00"), bar(0, 50, "01:00", "1.2s/it")),
        *(bar(0, 51, "00:59"), bar(0, 76, "01:26")),
    ]
    assert timed("".join(rows)) == [(1.2, 50, 50), (1, 76, 26)]
