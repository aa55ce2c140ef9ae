"""The page on statistics: each number on it is computed again."""

import re
from functools import cache

import numpy as np
import pytest

from hpc_train.scaling.record_arrays import Floats
from tests.bench import bench_coverage
from tests.project.shown_commands import ROOT
from tests.scaling.arrays import welch

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
    said = numbers(r"\| Welch on logarithms \| (\d+) % \| (\d+) % \| (\d+) % \|")
    for percent, n in zip(said, (3, 5, 10), strict=True):
        _, low, high = welch(noisy(1, 20_000, n), noisy(2, 20_000, n), 0.95)
        assert covered(low, high) == pytest.approx(percent, abs=1)


@pytest.mark.long
@pytest.mark.parametrize("kind", bench_coverage.KINDS)
def test_the_coverage_of_each_kind_of_runs(kind: str) -> None:
    text = (ROOT / "docs" / "statistics.md").read_text(encoding="utf-8")
    for n in (3, 5):
        (said,) = re.findall(rf"^\| {re.escape(kind)} \| {n} \| (.*) \|$", text, re.MULTILINE)
        found = bench_coverage.logs(kind, n, np.random.default_rng(bench_coverage.SEED))
        shares = [100 * share for share in bench_coverage.coverage(found).values()]
        assert [float(cell.rstrip(" %")) for cell in said.split(" | ")] == pytest.approx(
            shares, abs=0.6
        )
        if "session" not in kind and "outliers" not in kind:
            assert shares[1] == pytest.approx(95, abs=1.5), "pairs"
