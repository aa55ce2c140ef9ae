"""Record: one measurement, with its unit, scope and source line; Pack: records as columns."""

import re
from collections.abc import Container, Iterable, Iterator, Sequence
from itertools import compress, groupby
from operator import attrgetter
from typing import Any, Literal, NamedTuple

import msgspec

from hpc_train.base import metrics
from hpc_train.base.metrics import UNITS
from hpc_train.base.value import Value
from hpc_train.jobs.log_selection import StatedScope

Scope = Literal[StatedScope, "unknown"]

# Records of a pack: large enough for compression and for the comparison of neighbouring values, and
# small enough that records are yielded while a log is read.
LOT = 2048
# Kind, line, value, step, rank.
_Row = tuple[int, int, float, int | None, int | None]
_OWN = frozenset({"line", "value", "step", "rank"})
_file = attrgetter("run", "source")


class Record(Value, frozen=True, kw_only=True, gc=False):
    """One value of one metric from one line of a log.

    `accuracy` and `mfu` are fractions, 0 to 1. `step` counts from 1 within the run. `rank` is the
    global rank that printed the line, None when the line does not say. `steps` is the number of
    steps that the value is the mean of: a line of a log that reports every tenth step has 10.
    `variant` distinguishes two values of one metric on one line (`out_of_place`, `in_place`), and
    `message_size` [B] is the message size of a bandwidth or latency. The metric `not_finite` counts
    a value that is NaN or infinite: `variant` is `loss`. The metric `condition` is a condition of
    the run: `variant` is `torch=2.13.0`.
    """

    run: str
    source: str
    line: int
    parser: str
    metric: str
    value: float
    unit: str
    scope: Scope
    step: int | None = None
    rank: int | None = None
    node: str | None = None
    steps: int = 1
    message_size: int | None = None
    variant: str = ""


class Pack(msgspec.Struct, array_like=True):
    """Some records of one file as columns, the form in which they are checked, stored and counted.

    Fields that many records share are stored once: `kinds`, so a record takes a row of five cells.
    `once`: the keys `once` of the records that have one, by position.
    """

    kinds: list[Record]
    kind: Sequence[int]
    line: Sequence[int]
    value: Sequence[float]
    step: Sequence[int | None]
    rank: Sequence[int | None]
    once: dict[int, str]

    def __len__(self) -> int:
        """Return the number of records."""
        return len(self.kind)

    @property
    def rows(self) -> Iterator[_Row]:
        """Iterate over the records as kind, line, value, step and rank."""
        return zip(self.kind, self.line, self.value, self.step, self.rank, strict=True)

    def records(self) -> Iterator[Record]:
        """Yield the records."""
        replace, kinds = msgspec.structs.replace, self.kinds
        for kind, line, value, step, rank in self.rows:
            yield replace(kinds[kind], line=line, value=value, step=step, rank=rank)

    def without(self, places: Container[int]) -> "Pack":
        """Return the pack without the records at these positions."""
        kept = [place not in places for place in range(len(self))]
        keys: dict[int, str] = {}
        if self.once:
            new = {old: new for new, old in enumerate(compress(range(len(self)), kept))}
            keys = {new[old]: key for old, key in self.once.items() if old in new}
        return Pack(
            self.kinds,
            list(compress(self.kind, kept)),
            list(compress(self.line, kept)),
            list(compress(self.value, kept)),
            list(compress(self.step, kept)),
            list(compress(self.rank, kept)),
            keys,
        )


_common = attrgetter(*(name for name in Record.__struct_fields__ if name not in _OWN))


def packs_of(records: Iterable[Record]) -> Iterator[Pack]:
    """Yield records as packs, each of one file."""
    for _, of_file in groupby(records, _file):
        numbers: dict[Any, int] = {}
        kinds: list[Record] = []
        rows: list[_Row] = []
        for record in of_file:
            kind = numbers.setdefault(_common(record), len(numbers))
            if kind == len(kinds):
                kinds.append(record)
            rows.append((kind, record.line, record.value, record.step, record.rank))
            if len(rows) == LOT:
                yield _pack(kinds, rows)
                numbers, kinds, rows = {}, [], []
        if rows:
            yield _pack(kinds, rows)


def _pack(kinds: list[Record], rows: Sequence[_Row]) -> "Pack":
    kind, line, value, step, rank = zip(*rows, strict=True) if rows else ((),) * 5
    return Pack(kinds, kind, line, value, step, rank, {})


SIZES = ("nodes", "gpus_per_node", "tasks_per_node", "cpus_per_task", "gpus", "ranks")
BATCH = "global_batch_size"
# One of these suffices for a row of a speedup table.
RESULTS = tuple(metric.record for metric in metrics.RESULTS)
# Rates per GPU of published tables; multiplied by the number of GPUs (or ranks).
RATES_PER_GPU = {f"{name}_per_gpu": name for name in metrics.RATE_RECORDS}
PER_GPU = RATES_PER_GPU | {f"{name}_per_gpu": name for name in ("tflops", "power", "energy")}
MEASURES = tuple(
    dict.fromkeys((
        *RESULTS, *PER_GPU, *(metric.record for metric in metrics.METRICS if metric.record)
    ))
)  # fmt: skip
OF_RUN = ("run", "state", "exit_code", "problem", "exclude", "restarts", "wall_s")
KNOWN = (*SIZES, *MEASURES, *OF_RUN)
CONDITIONS = frozenset({
    "model", "dataset", "data", "precision", "torch", "nccl", "rccl", "nccl2", "cuda", "rocm",
    "driver", "mpi", "partition", "qos", "site", "cluster", "gpu", "container", "image", "commit",
    "dirty", "layout", "tensor_parallel", "pipeline_parallel", "context_parallel",
    "expert_parallel", "sharding", "optimiser", "optimizer", "framework", "sequence_length",
    "parameters", "flops_per_sample", "gpu_peak_tflops", "throttled",
})  # fmt: skip
# They differ between runs and do not separate series.
UNUSED = frozenset({
    "seed", "repetition", "rep", "job_id", "jobid", "job", "date", "started", "ended", "comment",
    "comments", "note", "notes", "source", "host", "hosts", "nodelist", "node_list", "speedup",
    "efficiency", "ideal", "scaling_efficiency", "data_parallel", "micro_batch_size",
    "gradient_accumulation", "nr", "no", "id", "index", "url", "examples", "user", "user_id",
    "created", "start_time", "end_time", "start", "end", "timestamp", "tags", "sweep", "duration",
    "experiment_id", "experiment_name", "artifact_uri", "lifecycle_stage", "run_uuid", "jobname",
    "job_name", "elapsed", "submit", "derivedexitcode", "source_name", "source_type", "version",
    "job_energy", "job_energy_j", "consumedenergy", "consumedenergyraw", "consumed_energy",
    "consumed_energy_raw", "hostname", "host_name", "node_name", "nodename",
})  # fmt: skip
# What a name that may mean several things is taken for; the answer says so.
ASSUMED = {
    "throughput": ("samples_per_second", "samples/s of the whole job"),
    "throughput_per_gpu": ("samples_per_second_per_gpu", "samples/s of one GPU"),
    **dict.fromkeys(("time", "runtime"), ("time_to_train", "the time to train")),
    **dict.fromkeys(("batch_size", "batch"), (BATCH, "that of all ranks")),
}
SPREADS = frozenset({"std", "stddev", "std_dev", "stdev", "sem", "stderr"})
# Other statistics of a measurement beside its mean, as of JUBE.
EXTREMES = frozenset({"min", "max", "sum", "first", "last"})
# Beside a spread, the number of runs that a row sums up.
COUNTS = ("n", "n_runs", "num_runs", "number_of_runs", "runs", "repeats", "repetitions", "cnt")
# A table with one of these columns does not need the ambiguous one.
UNAMBIGUOUS = {
    "throughput": (*metrics.RATE_RECORDS, *RATES_PER_GPU),
    **dict.fromkeys(("time", "runtime"), ("step_time", "epoch_time", "time_to_train")),
    **dict.fromkeys(("batch_size", "batch"), (BATCH,)),
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


_SECONDS = {
    "s": 1.0, "sec": 1.0, "secs": 1.0, "second": 1.0, "seconds": 1.0, "ms": 1e-3, "us": 1e-6,
    "µs": 1e-6, "min": 60.0, "mins": 60.0, "minutes": 60.0, "h": 3600.0, "hours": 3600.0,
}  # fmt: skip
FACTORS = {
    "s": _SECONDS,
    "fraction": {"%": 0.01, "percent": 0.01},
    "W": {"w": 1.0, "watt": 1.0, "watts": 1.0, "kw": 1e3},
    "J": {"j": 1.0, "kj": 1e3, "wh": 3.6e3, "kwh": 3.6e6},
}
FRACTIONS = ("accuracy", "mfu")
_UNITS_OF_RUN = {"wall_s": "s"}
_BRACKETS = re.compile(r"^([^\[(]+)[\[(]([^\])]*)[\])]?\s*")
_ITEMS = {
    "samples": ("samples", "images", "imgs", "img", "sequences", "seqs", "seq"),
    "tokens": ("tokens", "toks", "tok"),
}
# A step or an epoch alone is a time only with a unit: `step_ms`, `ms/iter`.
_TIMES = {
    **dict.fromkeys(("step", "iter", "iteration", "it", "batch"), "step_time"),
    "epoch": "epoch_time", **dict.fromkeys(("train", "training", "total"), "time_to_train"),
}  # fmt: skip
_EACH = re.compile(rf"^(?P<unit>{'|'.join(_SECONDS)})_per_(?P<each>[a-z]+)")
_RATE = re.compile(r"^(?P<item>[a-z]+)_per_(?:s|sec|second)(?P<each>(?:_per_gpu)?)")
_MEAN = re.compile(r"^(?:avg|average|mean|median)_|_(?:avg|average|mean|median)$")
_ALIASES = {
    "world_size": "ranks", "n_ranks": "ranks", "num_ranks": "ranks", "ntasks": "ranks",
    "global_batch": "global_batch_size", "gbs": "global_batch_size",
    "batch_size_global": "global_batch_size", "total_batch_size": "global_batch_size",
    "optimiser_steps": "steps", "optimizer_steps": "steps", "samples_seen": "samples",
    **dict.fromkeys(("regime", "scaling_type", "scaling_regime"), "scaling"), "name": "run",
    "run_id": "run", "excluded": "exclude", "wall_time": "wall_s",
    # An axis would count a failed run as ok.
    **dict.fromkeys(("status", "job_state", "job_status", "run_status", "run_state"), "state"),
    **dict.fromkeys(("exitcode", "exit_status", "return_code", "returncode"), "exit_code"),
    **dict.fromkeys(("exit", "exitstatus", "status_code", "retcode", "rc"), "exit_code"),
    "elapsedraw": "wall_s", "nnodes": "nodes",
    "time_per_step": "step_time", "iteration_time": "step_time", "time_per_iteration": "step_time",
    "time_per_epoch": "epoch_time", **dict.fromkeys(("iter_time", "batch_time"), "step_time"),
    **dict.fromkeys(("train_time", "training_time", "total_time"), "time_to_train"),
    "ranks_per_node": "tasks_per_node", "processes_per_node": "tasks_per_node",
    "ntasks_per_node": "tasks_per_node",
    **{f"{one}{of}": of for of in ("gpus", "nodes") for one in ("num_", "n_", "n", "total_")},
    "num_gpus_per_node": "gpus_per_node",
    **{f"{one}_of_{of}": of for of in ("gpus", "nodes", "ranks") for one in ("number", "num")},
    "taskspernode": "tasks_per_node", "gpuspernode": "gpus_per_node", "mbs": "micro_batch_size",
    **{f"{of}_{end}": of for of in ("gpus", "nodes") for end in ("total", "count")},
    **{f"{of}_count": f"{of}s" for of in ("gpu", "node", "rank")},
    "workers": "ranks", "num_workers": "ranks",
    **{f"{of}_loss": "loss" for of in ("val", "valid", "test", "eval", "validation")},
    **{f"{of}_{acc}": "accuracy" for of in ("val", "valid", "test", "eval", "validation")
       for acc in ("acc", "accuracy")},
    **dict.fromkeys(("acc", "acc1", "top1", "top_1"), "accuracy"),
    **{f"{name}_{unit.lower()}": name for name, unit in UNITS.items() if unit in ("GiB", "J")},
}  # fmt: skip


class Heading(NamedTuple):
    """A name, and the factor that converts its numbers to hpctrain's unit.

    `unit` is the unit in the heading, if it differs.
    """

    name: str
    factor: float = 1.0
    unit: str = ""


def heading(text: str) -> Heading:
    """Return the meaning of a heading: `Step time [ms]` is `step_time` in ms, `img/s` a rate.

    A heading with an unknown unit is not changed.
    """
    text = text.strip()
    found = _BRACKETS.fullmatch(text)
    if not found:
        return _with_ending(_word(text))
    head, unit = _word(found[1]), found[2].strip()
    for name in _joined(head, _word(unit)):
        if name in KNOWN:
            return Heading(name)
    if not unit:
        return Heading(head)
    if unit.lower() == UNITS.get(_measure(head), "").lower():
        return Heading(head)
    return _in_unit(head, unit) or Heading(text)


def plain_name(text: str) -> str:
    """Return the name of a heading."""
    return heading(text).name


def _joined(head: str, more: str) -> Iterator[str]:
    """Yield the possible names of `Throughput (img/s)` or `GPUs (per node)`."""
    yield _word(f"{head}_{more}")
    yield _word(f"{more}_{head}")
    if head in ASSUMED and more in MEASURES:
        yield more


def _with_ending(word: str) -> Heading:
    each = _EACH.fullmatch(word)
    head, _, unit = (each["each"], "", each["unit"]) if each else word.rpartition("_")
    return (word not in KNOWN and _in_unit(_ALIASES.get(head, head), unit)) or Heading(word)


def _in_unit(head: str, unit: str) -> Heading | None:
    head = _TIMES.get(head, head)
    measure = _measure(head)
    ours = "fraction" if head in FRACTIONS else UNITS.get(measure, _UNITS_OF_RUN.get(head, ""))
    factor = FACTORS.get(ours, {}).get(unit.lower())
    if factor is None or measure not in KNOWN:
        return None
    return Heading(head, factor, "" if factor == 1 else unit)


def _measure(head: str) -> str:
    name, _ = ASSUMED.get(head, (head, ""))
    return PER_GPU.get(name, name)


def _word(text: str) -> str:
    text = text.strip().lower().replace("/", " per ").replace("#", " num ").replace("-", " ")
    word = "_".join(text.replace("_", " ").split())
    rate = _RATE.fullmatch(word)
    if rate:
        item = next((ours for ours, all_ in _ITEMS.items() if rate["item"] in all_), rate["item"])
        word = f"{item}_per_second{rate['each']}"
    bare = _MEAN.sub("", word)
    bare = _ALIASES.get(bare, bare)
    return bare if bare in KNOWN or bare in ASSUMED else _ALIASES.get(word, word)
