"""Values that a person states for a run: sizes, conditions of a series, and others."""

from __future__ import annotations

from typing import Any

from hpc_train.model import metrics
from hpc_train.model.value import Value

SIZES = ("nodes", "gpus_per_node", "tasks_per_node", "cpus_per_task", "gpus", "ranks")
BATCH = "global_batch_size"
# One of these suffices for a row of a speedup table.
RESULTS = tuple(metric.record for metric in metrics.RESULTS)
# Rates per GPU of published tables; multiplied by the number of GPUs (or ranks).
PER_GPU = {f"{name}_per_gpu": name for name in metrics.RATE_RECORDS}
MEASURES = tuple(
    dict.fromkeys((
        *RESULTS, *PER_GPU, *(metric.record for metric in metrics.METRICS if metric.record),
        "power", "examples",
    ))
)  # fmt: skip
OF_RUN = ("run", "state", "problem", "exclude", "restarts", "wall_s")
KNOWN = (*SIZES, *MEASURES, *OF_RUN)
CONDITIONS = frozenset({
    "model", "dataset", "data", "precision", "torch", "nccl", "rccl", "nccl2", "cuda", "rocm",
    "driver", "mpi", "partition", "qos", "site", "cluster", "gpu", "container", "image", "commit",
    "dirty", "layout", "tensor_parallel", "pipeline_parallel", "context_parallel",
    "expert_parallel", "sharding", "optimiser", "optimizer", "framework", "sequence_length",
    "parameters",
})  # fmt: skip
# They differ between runs and do not separate series.
UNUSED = frozenset({
    "seed", "repetition", "rep", "job_id", "jobid", "job", "date", "started", "ended", "comment",
    "comments", "note", "notes", "source", "host", "hosts", "nodelist", "node_list", "speedup",
    "efficiency", "ideal", "scaling_efficiency", "data_parallel", "micro_batch_size",
    "gradient_accumulation", "nr", "no", "id", "index", "url",
})  # fmt: skip
# Ambiguous names, and the names to use instead.
AMBIGUOUS = {
    "throughput": "samples_per_second or tokens_per_second, over all ranks",
    "time": "step_time, epoch_time or time_to_train, in seconds",
    "runtime": "step_time, epoch_time or time_to_train, in seconds",
    "batch_size": "global_batch_size (of all ranks) or micro_batch_size (of one)",
    "batch": "global_batch_size (of all ranks) or micro_batch_size (of one)",
}
# A name this similar to a known one is a typing error, not an axis.
_NEAR = 0.85


class Stated(Value, frozen=True, kw_only=True):
    """Values stated for one run; `exclude` is the reason why it is excluded."""

    sizes: dict[str, int] = {}
    global_batch: float | None = None
    axes: dict[str, Any] = {}
    conditions: dict[str, str] = {}
    exclude: str = ""


def misspelt(name: str, known: tuple[str, ...]) -> str:
    """Return the known name that a misspelt one is similar to, or an empty text."""
    import difflib

    if name in known or name in CONDITIONS or name in UNUSED:
        return ""
    return next(iter(difflib.get_close_matches(name, known, n=1, cutoff=_NEAR)), "")


def complete_sizes(given: dict[str, int]) -> dict[str, int]:
    """Return nodes, GPUs and tasks per node, and ranks, as far as they can be derived.

    `gpus` is the total number. By default there is one task per GPU.

    Raises:
        ValueError: the numbers contradict one another; the text says how.
    """
    sizes = {name: given[name] for name in SIZES if name in given}
    gpus = sizes.pop("gpus", None)
    _divide(sizes, "gpus_per_node", "gpus", gpus)
    if "tasks_per_node" not in sizes and "ranks" not in sizes and sizes.get("gpus_per_node"):
        sizes["tasks_per_node"] = sizes["gpus_per_node"]
    _divide(sizes, "tasks_per_node", "ranks", sizes.get("ranks"))
    _divide(sizes, "gpus_per_node", "gpus", gpus)
    if "nodes" in sizes and "tasks_per_node" in sizes:
        sizes["ranks"] = sizes["nodes"] * sizes["tasks_per_node"]
    if gpus and "nodes" not in sizes:
        sizes = {"ranks": gpus, **sizes, "gpus": gpus}
    return sizes


def _divide(sizes: dict[str, int], each: str, word: str, total: int | None) -> None:
    """Find the third of nodes, number per node and number of all; check all three."""
    nodes, per_node = sizes.get("nodes"), sizes.get(each)
    if total is None or (nodes is None and not per_node):
        return
    if nodes is not None and per_node is not None and nodes * per_node != total:
        raise ValueError(f"{word} {total} is not nodes {nodes} x {each} {per_node}")
    name, known = ("nodes", per_node) if nodes is None else (each, nodes)
    if known and total % known:
        raise ValueError(
            f"{word} {total} is not a multiple of {each if nodes is None else 'nodes'} {known}"
        )
    sizes[name] = total // known if known else 0
