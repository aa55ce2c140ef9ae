"""Cost of a result: hours of nodes and GPUs, money and energy, per million samples.

Hours are of what was allocated, whether it worked or not; money is in the currency of the price.
"""

from __future__ import annotations

from hpc_train.tables.laws import Number, above
from hpc_train.tables.magnitudes import bounded

MILLION = 1e6
HOUR_S = 3600.0
KWH_J = 3.6e6


@bounded
def hours(units: Number, seconds: Number) -> Number:
    """Return p T/3600: GPU-hours of GPUs, node-hours of nodes; failed runs count as well."""
    return units * seconds / HOUR_S


@bounded
def hours_per_million(units: Number, samples_per_second: Number) -> Number:
    """Return 1e6 p/(3600 X): GPU- or node-hours for a million samples at a steady rate.

    Start-up, evaluation and failed runs are not in it: `hours` of all runs is what was spent.
    """
    return units * (MILLION / HOUR_S) / above(samples_per_second, "a rate")


@bounded
def price_per_million(gpu_hours_per_million: Number, price_per_gpu_hour: float | None) -> Number:
    """Return GPU-hours per million samples times the price; NaN without a price."""
    return gpu_hours_per_million * (
        float("nan") if price_per_gpu_hour is None else price_per_gpu_hour
    )


@bounded
def kwh(joules: Number) -> Number:
    """Return E/3.6e6, the energy in kWh."""
    return joules / KWH_J


@bounded
def kwh_per_million(joules: Number, samples: Number) -> Number:
    """Return the energy [kWh] for a million samples, from what a run used and saw."""
    return joules * (MILLION / KWH_J) / above(samples, "a number of samples")
