"""Coverage of the intervals of a speedup: the share of simulated studies that contain the truth.

Nominal 95 %; 4 sizes with n runs each, 2 % noise. `in turns` is the order of `hpctrain submit`: a
random order in each repetition. Welch takes the runs as independent; pairs are the runs of one
repetition of a nested study.
"""

import numpy as np

from hpc_train.scaling.points import welch
from hpc_train.scaling.record_arrays import Floats, Ints, Moments
from tests.scaling.arrays import along_axis

STUDIES, SIZES, NOISE, LEVEL, SEED = 3000, 4, 0.02, 0.95, 20261125
KINDS = (
    "normal", "lognormal 20 %", "unequal spread", "growing outliers",
    "allocations differ by 5 %, in turns", "AR(1) 0.5, in turns", "AR(1) 0.8, in turns",
    "drift of 10 %, in turns", "AR(1) 0.5, one session for each size",
    "sessions differ by 3 %, one for each size",
)  # fmt: skip


def places(chance: np.random.Generator, n: int, *, in_turns: bool) -> Ints:
    """Return the place in time of each run: studies x sizes x repetitions."""
    if not in_turns:
        return np.broadcast_to(np.arange(SIZES * n).reshape(SIZES, n), (STUDIES, SIZES, n))
    order = chance.random((STUDIES, SIZES, n)).argsort(axis=1).argsort(axis=1)
    return np.asarray(order + SIZES * np.arange(n))


def logs(kind: str, n: int, chance: np.random.Generator) -> Floats:
    """Return the logarithms of the rates, relative to the truth: studies x sizes x runs."""
    noise = NOISE * chance.standard_normal((STUDIES, SIZES, n))
    time = places(chance, n, in_turns="in turns" in kind)
    size = np.arange(SIZES)[:, None]
    if kind.startswith("AR(1)"):
        return NOISE * in_time(ar1(float(kind[6:9]), n, chance), time)
    found = {
        "normal": noise,
        "lognormal 20 %": 10 * noise,
        "unequal spread": noise * (1 + size),
        "growing outliers": noise - 0.2 * ((chance.random(noise.shape) < size / 20) - size / 20),
        "allocations differ": noise + 0.05 * chance.standard_normal((STUDIES, 1, n)),
        "drift of 10 %": noise + 0.1 * time / (SIZES * n - 1),
        "sessions differ": noise + 0.03 * chance.standard_normal((STUDIES, SIZES, 1)),
    }
    return next(values for name, values in found.items() if kind.startswith(name))


def ar1(share: float, n: int, chance: np.random.Generator) -> Floats:
    """Return a stationary series of unit variance: studies x times."""
    found = chance.standard_normal((STUDIES, SIZES * n))
    for step in range(1, SIZES * n):
        found[:, step] = share * found[:, step - 1] + (1 - share**2) ** 0.5 * found[:, step]
    return found


def in_time(series: Floats, time: Ints) -> Floats:
    """Return the values of a series at the places of the runs."""
    return np.take_along_axis(series, time.reshape(STUDIES, -1), axis=1).reshape(time.shape)


def coverage(found: Floats) -> dict[str, float]:
    """Return the coverage of the ratio of the largest size to the smallest, by method."""
    b, a = found[:, -1], found[:, 0]
    sure = Moments(np.full(STUDIES, np.inf), np.zeros(STUDIES), np.zeros(STUDIES))
    limits = {
        "Welch": welch(along_axis(b), along_axis(a), LEVEL),
        "pairs": welch(along_axis(b - a), sure, LEVEL),
    }
    return {name: _share(one.low, one.high) for name, one in limits.items()}


def _share(low: Floats, high: Floats) -> float:
    return float(np.mean((low <= 1) & (high >= 1)))


def row(kind: str, n: int) -> str:
    """Return a row of the table."""
    found = logs(kind, n, np.random.default_rng(SEED))
    shares = coverage(found).values()
    return f"| {kind} | {n} | {' | '.join(f'{100 * share:.0f} %' for share in shares)} |"


def main() -> None:
    """Print the table."""
    print("| runs | n | Welch | pairs |")
    print("|---|---|---|---|")
    for kind in KINDS:
        for n in (3, 5):
            print(row(kind, n))


if __name__ == "__main__":
    main()
