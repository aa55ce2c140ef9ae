"""What n repetitions resolve, by numerical integration: `study_power` has the results."""

import numpy as np
from scipy import special

from hpc_train.scaling.points import students_t


def resolution(n: int, noise: float = 0.02) -> float:
    """Return the expected half width of a ratio's 95 % interval, n jobs against n.

    E[t_v noise sqrt((x + y)/n)] over x, y ~ chi^2_{n-1}/(n - 1), the two samples' variances, with v
    by Welch-Satterthwaite: what `intervals.ratio_interval` gives on average, as a share of the
    ratio. Integrated at the middles of equally likely steps of both.
    """
    steps = 200
    # The quantile of chi^2_k is twice that of the gamma distribution k/2.
    middles = (np.arange(steps) + 0.5) / steps
    scaled = 2 * special.gammaincinv((n - 1) / 2, middles) / (n - 1)
    x, y = np.meshgrid(scaled, scaled)
    freedom = (n - 1) * (x + y) ** 2 / (x**2 + y**2)
    return float(np.mean(students_t(freedom, 0.95) * noise * np.sqrt((x + y) / n)))
