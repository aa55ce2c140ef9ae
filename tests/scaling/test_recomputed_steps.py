"""Random logs of steps, against loops over their records that share no code with the product."""

import math
import random
import statistics
from collections.abc import Sequence
from typing import Any

import pytest

from hpc_train.jobs.study import Warmup
from hpc_train.logs.record import Record
from hpc_train.scaling.runs import run_frame
from hpc_train.scaling.speedup import speedup_frame
from tests.scaling.studies import expected, record, study

Logged = list[tuple[int, int, list[float], list[float]]]


def logged(seed: int) -> tuple[Logged, Warmup, int]:
    """(step, steps that it is the mean of, seconds of each rank, samples of each rank)."""
    chance = random.Random(seed)  # noqa: S311
    ranks, every = chance.choice((1, 2, 5)), chance.choice((1, 1, 10))
    first, count = chance.choice((0, 1, 500)), chance.randint(30, 60)
    lines: Logged = []
    for place in range(count):
        step = first + place * every
        seconds = [chance.choice((0.25, 0.5, 1.0, 3.0)) for _ in range(ranks)]
        lines.append((step, every, seconds, [float(chance.randint(8, 64)) for _ in range(ranks)]))
    warmup = Warmup(steps=chance.choice((0, 3, 10, 25)), seconds=chance.choice((0, 0, 7.5, 20.0)))
    return lines, warmup, ranks


def records_of(lines: Logged) -> list[Record]:
    return [
        record("a", metric, value, scope="per_rank", rank=rank, step=step, steps=every)
        for step, every, seconds, samples in lines
        for rank in range(len(seconds))
        for metric, value in (("step_time", seconds[rank]), ("samples", samples[rank]))
    ]


def reduced(lines: Logged, warmup: Warmup) -> dict[str, float]:
    """Loop over the lines as the text of the documentation has it."""
    passed, kept, left_out = 0.0, [], 0
    for step, every, seconds, samples in lines:
        if step - lines[0][0] >= warmup.steps and passed >= warmup.seconds:
            kept.append((max(seconds), sum(samples), every))
        else:
            left_out += every
        passed += every * max(seconds)
    times = sorted(seconds for seconds, _, _ in kept)
    total = math.fsum(seconds * every for seconds, _, every in kept)
    return {
        "steps": sum(every for *_, every in kept),
        "warmup_steps": left_out,
        "step_time_s": statistics.median(times),
        "step_time_mean_s": total / sum(every for *_, every in kept),
        "step_p05_s": quantile(times, 5),
        "step_p25_s": quantile(times, 25),
        "step_p75_s": quantile(times, 75),
        "step_p95_s": quantile(times, 95),
        "samples_per_second": statistics.median(samples for _, samples, _ in kept)
        / statistics.median(times),
    }


def quantile(ordered: Sequence[float], percent: int) -> float:
    return statistics.quantiles(ordered, n=100, method="inclusive")[percent - 1]


@pytest.mark.parametrize("seed", range(40))
def test_every_number_of_a_random_log(seed: int) -> None:
    lines, warmup, ranks = logged(seed)
    frame = run_frame(study([expected("a", gpus=ranks)], warmup=warmup), records_of(lines))
    wanted = reduced(lines, warmup)
    found = {name: frame[name].astype(float).tolist()[0] for name in wanted}
    assert found == pytest.approx(wanted, rel=1e-12)


def test_printed_rates_are_those_of_the_median_step() -> None:
    rates = enumerate((100.0, 100.0, 50.0, 2.0))
    records = [record("a", "samples_per_second", rate, step=step) for step, rate in rates]
    frame = run_frame(study([expected("a")]), records)
    # Steps of 10, 10, 20 and 500 ms for a sample: the median step takes 15 ms.
    assert frame.at[0, "samples_per_second"] == pytest.approx(1 / 0.015)


@pytest.mark.parametrize("shown", [(1000, 1000, 999, 1000, 995), (4096, 4096, 4098, 4096, 4102)])
def test_batches_that_ranks_cut_to_whole_samples_are_one_batch(shown: tuple[int, ...]) -> None:
    sizes = (1, 2, 3, 4, 7)
    runs = [expected(f"n{nodes}", nodes=nodes) for nodes in sizes]
    records: list[Any] = []
    for run, batch, nodes in zip(runs, shown, sizes, strict=True):
        records.append(record(run.run_id, "samples_per_second", 10.0 * nodes))
        records.append(record(run.run_id, "global_batch_size", float(batch)))
    frame = speedup_frame(run_frame(study(runs), records), study(runs))
    assert set(frame["regime"]) == {"strong"}
    assert frame["speedup"].tolist() == pytest.approx(sizes)
