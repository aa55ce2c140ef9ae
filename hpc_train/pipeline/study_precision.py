"""A prepared study -> the statistical power of its table, before anything is submitted."""

from __future__ import annotations

from collections.abc import Iterator
from math import sqrt

from hpc_train.model.training_strategies import FIRST_PROFILED
from hpc_train.pipeline.prepared import Prepared

# Expected half width of the 95 % interval of a ratio, n jobs against n, at 2 % noise, computed once
# (tests/tables/resolution.py); beyond the last, widths shrink as 1/sqrt(n).
WIDTHS = {
    2: 0.1388, 3: 0.0494, 4: 0.0354, 5: 0.0293, 6: 0.0257, 7: 0.0232, 8: 0.0213, 9: 0.0199,
    10: 0.0187, 11: 0.0177, 12: 0.0168, 13: 0.0161, 14: 0.0154, 15: 0.0149, 16: 0.0144, 17: 0.0139,
    18: 0.0135, 19: 0.0131, 20: 0.0127,
}  # fmt: skip
LARGEST = max(WIDTHS)
USUAL_REPETITIONS = (3, 5, 10, 20)


def preview(prepared: Prepared) -> Iterator[str]:
    """Yield the resolution of the repetitions of a study; empty for a job."""
    if prepared.study is None:
        return
    yield _repetitions(prepared.study.spec.repetitions)
    yield from _profiled(prepared, prepared.study.spec.warmup.steps)
    if len(prepared.points) == 1:
        yield "1 point: no speedup; several sizes make one: --nodes 1,2,4, or more values in `axes`"


def _repetitions(n: int) -> str:
    more = [other for other in USUAL_REPETITIONS if other > n][:2]
    others = ", ".join(f"{other}: {_resolved(other)}" for other in more)
    aside = f" ({others})" if others else ""
    if n < 2:
        return f"1 repetition: no interval and no verdict; with more, at 2 % noise{aside}"
    return f"{n} repetitions resolve about {_resolved(n)} at 2 % noise{aside}"


def _profiled(prepared: Prepared, warmup: int) -> Iterator[str]:
    """Yield a warning if steps are measured that are slower because they are profiled."""
    trainers = [point.job.value.trainer for point in prepared.points]
    most = max((own.profile_steps or 0 for own in trainers if own), default=0)
    last = FIRST_PROFILED + most - 1
    if most and last > warmup:
        span = f"steps {FIRST_PROFILED} to {last} are"
        which = span if most > 1 else f"step {last} is"
        yield (
            f"{which} profiled and slower, but measured; `warmup: {{steps: {last}}}` excludes them"
        )


def _resolved(n: int) -> str:
    width = 100 * (expected_width(n) or 0)
    return f"±{width:.0f} %" if width >= 2 else f"±{width:.1f} %"


def expected_width(n: int) -> float | None:
    """Return the expected half width of a ratio's interval as a share of it; None for n < 2."""
    if n < 2:
        return None
    return WIDTHS.get(n) or WIDTHS[LARGEST] * sqrt(LARGEST / n)
