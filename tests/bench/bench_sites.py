"""Site profiles: loading each shipped one, and checking all with their sample jobs.

Budgets: 5 ms for a profile, 10 s for all checks.
"""

from __future__ import annotations

import datetime
import statistics
import time

from hpc_train.data_folders import profile_folder
from hpc_train.pipeline.site.check import check_site
from hpc_train.sites.load import load_site

ROUNDS = 15


def load_s(name: str) -> float:
    """Return the median of some loads, after a first one that fills caches."""
    load_site(name)
    times = []
    for _ in range(ROUNDS):
        started = time.perf_counter()
        load_site(name)
        times.append(time.perf_counter() - started)
    return statistics.median(times)


def main() -> None:
    names = sorted(str(path) for path in profile_folder().glob("*.yaml"))
    loads = {name.rpartition("/")[2]: load_s(name) for name in names}
    slowest = max(loads, key=lambda name: loads[name])
    usual = statistics.median(loads.values())
    print(f"loading {len(names)} profiles: median {usual * 1e3:.1f} ms (budget 5 ms)")
    print(f"  slowest {slowest}: {loads[slowest] * 1e3:.1f} ms")
    started, jobs = time.perf_counter(), 0
    for name in names:
        jobs += check_site(name, datetime.date.today()).jobs
    print(f"checking all, {jobs} jobs: {time.perf_counter() - started:.1f} s (budget 10 s)")


if __name__ == "__main__":
    main()
