"""A prepared study -> the statistical power of its table, before anything is submitted."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from hpc_train.model.scaling_fit import Law
from hpc_train.model.study import Scaling, series_label
from hpc_train.model.training_strategies import FIRST_PROFILED
from hpc_train.pipeline.prepared import Prepared
from hpc_train.tables.expected_precision import expected_width, fit_needs

# Number of node counts in compute-time proposals (CSC, access to Mahti's large partition).
PROPOSAL_NODE_COUNTS = 3
USUAL_REPETITIONS = (3, 5, 10, 20)
LAWS: dict[Law, str] = {"amdahl": "Amdahl", "gustafson": "Gustafson", "usl": "USL"}


def preview(prepared: Prepared) -> Iterator[str]:
    """Yield the resolution of the repetitions, and which fits need more sizes; empty for a job."""
    if prepared.study is None:
        return
    yield _repetitions(prepared.study.spec.repetitions)
    yield from _profiled(prepared, prepared.study.spec.warmup.steps)
    sizes: dict[str, set[int]] = defaultdict(set)
    nodes: dict[str, set[int]] = defaultdict(set)
    for point in prepared.points:
        size, series = point.plan.topology, series_label(point.axes)
        sizes[series].add(size.nodes * size.gpus_per_node or size.world_size)
        nodes[series].add(size.nodes)
    fewest = min(len(found) for found in sizes.values())
    if len(prepared.points) == 1:
        yield "1 point: no speedup; several sizes make one: --nodes 1,2,4, or more values in `axes`"
    # A study without a size axis has nothing to fit.
    if max(len(found) for found in sizes.values()) > 1:
        yield from _sizes(fewest, prepared.study.spec.scaling)
        yield from _node_counts(min(len(found) for found in nodes.values()))


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


def _sizes(sizes: int, scaling: Scaling | None) -> Iterator[str]:
    unsuited = "amdahl" if scaling == "weak" else "gustafson"
    needs = {law: least for law, least in fit_needs(sizes).items() if law != unsuited}
    if needs:
        what = ", ".join(f"{LAWS[law]} needs {least}" for law, least in needs.items())
        yield f"{_counted(sizes, 'size')}: too few for a fit ({what})"


def _node_counts(found: int) -> Iterator[str]:
    if found < PROPOSAL_NODE_COUNTS:
        yield (
            f"{_counted(found, 'node count')}: proposals for compute time require "
            f"{PROPOSAL_NODE_COUNTS} (CSC)"
        )


def _counted(count: int, word: str) -> str:
    return f"{count} {word}{'s' * (count != 1)}"
