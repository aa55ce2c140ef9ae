"""A law is shown if it fits: tests of lack of fit, and the choice between two that do."""

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray

from hpc_train.scaling.record_arrays import numbers
from hpc_train.scaling.scaling_fits import Fit, aicc, fits, lack_of_fit, noise_of, solve
from tests.scaling import true_laws

Floats = NDArray[np.float64]

Q: Floats = np.exp2(np.arange(7, dtype=np.float64))


def study(truth: Floats, seed: int, jobs: int = 3, noise: float = 0.02) -> pd.DataFrame:
    """Return the points of a study whose true speedups are known; the baseline has noise too."""
    runs = truth * np.exp(noise * np.random.default_rng(seed).standard_normal((jobs, len(truth))))
    frame: pd.DataFrame = pd.DataFrame({"ideal": Q[: len(truth)]})
    frame["speedup"] = runs.mean(0) / runs.mean(0)[0]
    frame["speedup_low"] = 0.0
    frame["n_ok"], frame["cv"] = jobs, runs.std(0, ddof=min(jobs - 1, 1)) / runs.mean(0)
    frame[["series", "regime", "nodes"]] = "all", "strong", 2
    return frame


def shown(frame: pd.DataFrame) -> str:
    laws = [fit.law for fit in fits(frame) if not fit.refused]
    assert len(laws) < 2
    return laws[0] if laws else ""


@pytest.mark.parametrize("studies", [60, pytest.param(400, marks=pytest.mark.long)])
def test_the_true_law_is_shown_and_refused_in_one_study_of_20(studies: int) -> None:
    amdahl = [fits(study(true_laws.amdahl(Q, 0.05), seed))[0] for seed in range(studies)]
    refused = np.mean(["F test" in fit.refused for fit in amdahl])
    assert abs(refused - 0.05) <= 4 * (0.05 * 0.95 / studies) ** 0.5
    chosen = [shown(study(true_laws.amdahl(Q, 0.05), seed)) for seed in range(studies // 2)]
    assert chosen.count("amdahl") > 0.8 * len(chosen)
    peaked = [shown(study(true_laws.usl(Q, 0.02, 5e-4), seed)) for seed in range(studies // 2)]
    assert peaked.count("usl") >= 0.9 * len(peaked)
    assert peaked.count("amdahl") == 0


def test_a_step_between_two_nodes_fits_no_law() -> None:
    step = np.where(Q > 8, 0.6, 1.0) * true_laws.amdahl(Q, 0.01)
    amdahl, usl = fits(study(step, 1))
    assert amdahl.refused.startswith("does not fit: residual ")
    assert amdahl.refused.endswith("between runs (F test, p < 0.001)")
    assert usl.refused.startswith("does not fit")
    alone = fits(study(step, 1, jobs=1))[0]
    assert alone.refused.endswith("more than 10 %, without repetitions")
    assert alone.lack_of_fit_p is None
    # A small residual is kept where there is no noise to compare it with.
    assert not fits(study(true_laws.amdahl(Q, 0.05), 1, jobs=1))[0].refused


@pytest.mark.parametrize("at", [2, 5])
def test_no_law_is_fitted_to_superlinear_points(at: int) -> None:
    frame = study(true_laws.amdahl(Q, 0.001), 1)
    frame.loc[at, ["speedup", "speedup_low"]] = 1.3 * Q[at], 1.2 * Q[at]
    reasons = {fit.refused for fit in fits(frame)}
    assert reasons == {"superlinear: the efficiency is above 100 % at some size"}
    # An interval that contains the ideal is not superlinear.
    frame.loc[at, ["speedup", "speedup_low"]] = 1.01 * Q[at], 0.98 * Q[at]
    assert "superlinear" not in {fit.refused.partition(":")[0] for fit in fits(frame)}


def test_lack_of_fit_and_aicc_by_their_definitions() -> None:
    from scipy import stats

    frame = study(true_laws.amdahl(Q, 0.05), 3)
    noise = noise_of(numbers(frame, "n_ok"), numbers(frame, "cv"))
    solved = solve("amdahl", Q, frame["speedup"].to_numpy(dtype=np.float64), noise)
    r, cv = solved.residuals, frame["cv"].to_numpy(dtype=np.float64)
    ratio = (3 * (r @ r) / 5) / (2 * (cv @ cv) / 14)
    assert lack_of_fit(solved, noise) == pytest.approx(stats.f.sf(ratio, 5, 14))
    variance = (3 * (r @ r) + 2 * (cv @ cv)) / 21
    assert aicc(solved, noise) == pytest.approx(21 * np.log(variance) + 6 + 24 / 17)
    assert isinstance(fits(frame)[0], Fit)
    # Least squares of all 21 runs: their variance, and Student's t with 21 - 2.
    target = Q / frame["speedup"].to_numpy(dtype=np.float64)
    design = np.stack([1 / target, Q / target], axis=-1)
    wanted = (3 * (r @ r) + 2 * (cv @ cv)) / 19 * np.linalg.inv(3 * design.T @ design)
    np.testing.assert_allclose(solved.covariance, wanted, rtol=1e-6)
    assert solved.t == pytest.approx(stats.t.ppf(0.975, 19))


def test_a_point_counts_as_often_as_it_has_runs() -> None:
    speedup = np.array([1.0, 1.9, 3.0])
    noise = noise_of(np.array([1.0, 1, 1000]), np.array([np.nan, np.nan, 0.02]))
    often = solve("amdahl", np.array([1.0, 2, 4]), speedup, noise).residuals
    assert abs(often[2]) < 0.001 < abs(often[1])


def test_equal_digits_in_all_repetitions_are_no_noise() -> None:
    frame = study(true_laws.amdahl(Q, 0.05), 1)
    assert not noise_of(numbers(frame, "n_ok"), np.zeros(len(frame))).is_measured
    assert fits(frame.assign(cv=0.0))[0].lack_of_fit_p is None


def test_a_smaller_size_than_the_baseline_may_be_more_efficient() -> None:
    frame = study(true_laws.amdahl(Q, 0.05), 2)
    frame["ideal"], frame["speedup"] = frame["ideal"] / 4, frame["speedup"] / frame["speedup"][2]
    frame["speedup_high"] = 1.05 * frame["speedup"]
    assert "superlinear" not in {fit.refused.partition(":")[0] for fit in fits(frame)}
