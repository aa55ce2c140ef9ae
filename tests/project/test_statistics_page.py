"""The page on statistics: each number on it is computed again."""

from __future__ import annotations

import re
from functools import cache

import numpy as np
import pytest

from hpc_train.tables.confidence_intervals import bootstrap, means, students_t
from hpc_train.tables.group_reductions import Floats, Moments
from hpc_train.tables.scaling_fits import fits
from tests.bench import bench_coverage
from tests.project.shown_commands import ROOT
from tests.tables.arrays import fieller, welch
from tests.tables.published_tables import PUBLISHED
from tests.tables.resolution import resolution
from tests.tables.test_published import table
from tests.tables.test_scaling_fits import simulated

NOISE = 0.02


@cache
def page() -> str:
    return " ".join((ROOT / "docs" / "statistics.md").read_text(encoding="utf-8").split())


def numbers(pattern: str) -> list[float]:
    """Return the numbers that the page says where a pattern matches it."""
    match = re.search(pattern, page())
    assert match, pattern
    return [float(group) for group in match.groups()]


def noisy(seed: int, *shape: int) -> Floats:
    """Rates around 1 with 2 % noise."""
    made: Floats = 1 + NOISE * np.random.default_rng(seed).standard_normal(shape)
    return made


def covered(low: Floats, high: Floats) -> float:
    return float(100 * np.mean((low <= 1) & (high >= 1)))


@pytest.mark.long
def test_coverage_of_the_intervals() -> None:
    for name, method in (("Welch on logarithms", welch), ("Fieller", fieller)):
        said = numbers(rf"\| {name}[^|]*\| (\d+) % \| (\d+) % \| (\d+) % \|")
        for percent, n in zip(said, (3, 5, 10), strict=True):
            _, low, high = method(noisy(1, 20_000, n), noisy(2, 20_000, n), 0.95)
            assert covered(low, high) == pytest.approx(percent, abs=1)
    said = numbers(r"\| percentile bootstrap of means \| (\d+) % \| (\d+) % \| (\d+) % \|")
    for percent, n in zip(said, (3, 5, 10), strict=True):
        _, low, high = bootstrap(noisy(1, 500, n), noisy(2, 500, n), 0.95, 1)
        assert covered(low, high) == pytest.approx(percent, abs=3)


@pytest.mark.long
def test_coverage_of_the_limits_of_a_mean() -> None:
    spread, n, *said = numbers(
        r"lognormal noise of (\d+) % and n = (\d+) they contain the true mean in (\d+) %; those of "
        r"the times themselves in (\d+) %, and have no lower limit above zero in (\d+) %"
    )
    times = np.exp(spread / 100 * np.random.default_rng(3).standard_normal((20_000, int(n))))
    truth = np.exp((spread / 100) ** 2 / 2)
    _, low, high = means(Moments.along_axis(times), 0.95)
    half = students_t(n - 1, 0.95) * times.std(-1, ddof=1) / n**0.5
    lowest = times.mean(-1) - half
    found = [
        covered(low / truth, high / truth),
        covered(lowest / truth, (lowest + 2 * half) / truth),
        100 * np.mean(lowest <= 0),
    ]
    assert found == pytest.approx(said, abs=1)


@pytest.mark.long
def test_steps_are_no_replicates() -> None:
    of_steps, of_jobs = numbers(
        r"500 steps contains the true value in (\d+) % .*? of the jobs, in (\d+) %"
    )
    jobs, steps, studies = 5, 500, 400
    a, b = (
        noisy(seed, studies, jobs, 1) * noisy(seed + 9, studies, jobs, steps) for seed in (1, 2)
    )
    _, low, high = welch(a.reshape(studies, -1), b.reshape(studies, -1), 0.95)
    assert covered(low, high) == pytest.approx(of_steps, abs=4)
    _, low, high = welch(a.mean(-1), b.mean(-1), 0.95)
    assert covered(low, high) == pytest.approx(of_jobs, abs=3)


@pytest.mark.long
def test_stragglers_widen_the_intervals() -> None:
    (percent,) = numbers(r"20 % slower, the intervals remain valid \((\d+) %\)")
    assert "three times as wide on average" in page()
    for n in (3, 5, 10):
        shape = (20_000, n)
        slow = [np.where(np.random.default_rng(s).random(shape) < 0.1, 1.2, 1) for s in (5, 6)]
        _, low, high = welch(noisy(1, *shape) / slow[0], noisy(2, *shape) / slow[1], 0.95)
        assert covered(low, high) == pytest.approx(percent, abs=1)
        _, low0, high0 = welch(noisy(1, *shape), noisy(2, *shape), 0.95)
        assert np.log(high / low).mean() / np.log(high0 / low0).mean() == pytest.approx(3, abs=0.3)


def test_what_repetitions_resolve() -> None:
    said = numbers(r"±(\S+) % wide for 3 jobs, ±(\S+) % for 5, ±(\S+) % for 10 and ±(\S+) % for 20")
    for percent, n in zip(said, (3, 5, 10, 20), strict=True):
        assert 100 * resolution(n) == pytest.approx(percent, abs=0.1)


@pytest.mark.long
def test_how_far_a_peak_is_bounded() -> None:
    none, of, low, high = numbers(
        r"bound no peak in (\d+) studies of (\d+); .*? between (\d+) and (\d+)\."
    )
    near = [simulated(s, "usl", np.array([1.0, 2, 3, 4, 6, 8])).peak for s in range(200)]
    assert sum(peak is None for peak in near) / 200 == pytest.approx(none / of, abs=0.03)
    far = [simulated(s, "usl", 2.0 ** np.arange(7.0)).peak for s in range(200)]
    known = [(p.low, p.high) for p in far if p and p.low is not None and p.high is not None]
    assert np.median(known, axis=0) == pytest.approx([low, high], rel=0.03)


def test_how_far_forecasts_of_published_curves_miss() -> None:
    curves, middle, worst = numbers(
        r"over (\d+) published .*? (\S+) % off .*? and (\d+) % at worst"
    )
    missed = []
    for name in PUBLISHED:
        points = table(name)
        points = points[(points["speedup"] > 0) & (points["ideal"] > 0)]
        sizes = points["ideal"].tolist()
        law = fits(points.iloc[:-1])[0]
        if sizes[-1] == 2 * sizes[-2] and not law.refused:
            told = law.curve[-1].speedup / float(points["speedup"].iloc[-1])
            missed.append(100 * abs(told - 1))
    assert len(missed) == curves
    assert np.median(missed) == pytest.approx(middle, abs=0.1)
    assert max(missed) == pytest.approx(worst, abs=0.5)


@pytest.mark.long
@pytest.mark.parametrize("kind", bench_coverage.KINDS)
def test_the_coverage_of_each_kind_of_runs(kind: str) -> None:
    text = (ROOT / "docs" / "statistics.md").read_text(encoding="utf-8")
    for n in (3, 5):
        (said,) = re.findall(rf"^\| {re.escape(kind)} \| {n} \| (.*) \|$", text, re.MULTILINE)
        found = bench_coverage.logs(kind, n, np.random.default_rng(bench_coverage.SEED))
        shares = [100 * share for share in bench_coverage.coverage(found).values()]
        assert [float(cell.rstrip(" %")) for cell in said.split(" | ")][:3] == pytest.approx(
            shares, abs=0.6
        )
        if "session" not in kind and "outliers" not in kind:
            assert shares[2] == pytest.approx(95, abs=1.5), "pairs"
