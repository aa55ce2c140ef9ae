"""Column headings of tables -> names and units of hpctrain."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from hpc_train.model.record import UNITS
from hpc_train.model.result_columns import AMBIGUOUS, KNOWN, MEASURES, PER_GPU

_SECONDS = {
    "s": 1.0, "sec": 1.0, "secs": 1.0, "second": 1.0, "seconds": 1.0, "ms": 1e-3, "us": 1e-6,
    "µs": 1e-6, "min": 60.0, "mins": 60.0, "minutes": 60.0, "h": 3600.0, "hours": 3600.0,
}  # fmt: skip
FACTORS = {"s": _SECONDS, "fraction": {"%": 0.01, "percent": 0.01}}
_FRACTIONS = ("accuracy", "mfu")
_BRACKETS = re.compile(r"^([^\[(]+)[\[(]([^\])]*)[\])]?\s*")
_ITEMS = {
    "samples": ("samples", "images", "imgs", "img", "sequences", "seqs", "seq"),
    "tokens": ("tokens", "toks", "tok"),
}
_RATE = re.compile(r"^(?P<item>[a-z]+)_per_(?:s|sec|second)(?P<each>(?:_per_gpu)?)")
_ALIASES = {
    "world_size": "ranks", "n_ranks": "ranks", "num_ranks": "ranks", "ntasks": "ranks",
    "global_batch": "global_batch_size", "gbs": "global_batch_size",
    "batch_size_global": "global_batch_size", "total_batch_size": "global_batch_size",
    "optimiser_steps": "steps", "optimizer_steps": "steps", "samples_seen": "samples",
    **dict.fromkeys(("regime", "scaling_type", "scaling_regime"), "scaling"), "name": "run",
    "run_id": "run", "excluded": "exclude", "wall_time": "wall_s",
    "time_per_step": "step_time", "iteration_time": "step_time", "time_per_iteration": "step_time",
    "time_per_epoch": "epoch_time",
    "ranks_per_node": "tasks_per_node", "processes_per_node": "tasks_per_node",
    "ntasks_per_node": "tasks_per_node",
    **{f"{one}{of}": of for of in ("gpus", "nodes") for one in ("num_", "n_", "n", "total_")},
    "num_gpus_per_node": "gpus_per_node",
    **{f"number_of_{of}": of for of in ("gpus", "nodes", "ranks")},
    **{f"{of}_total": of for of in ("gpus", "nodes")},
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
    if head in AMBIGUOUS or not unit:
        return Heading(head)
    if unit.lower() == UNITS.get(PER_GPU.get(head, head), "").lower():
        return Heading(head)
    return _in_unit(head, unit) or Heading(text)


def plain_name(text: str) -> str:
    """Return the name of a heading."""
    return heading(text).name


def _joined(head: str, more: str) -> Iterator[str]:
    """Yield the possible names of `Throughput (img/s)` or `GPUs (per node)`."""
    yield _word(f"{head}_{more}")
    yield _word(f"{more}_{head}")
    if head in AMBIGUOUS and more in MEASURES:
        yield more


def _with_ending(word: str) -> Heading:
    head, _, unit = word.rpartition("_")
    head = _ALIASES.get(head, head)
    return (word not in KNOWN and _in_unit(head, unit)) or Heading(word)


def _in_unit(head: str, unit: str) -> Heading | None:
    ours = "fraction" if head in _FRACTIONS else UNITS.get(head, "s" if head == "wall_s" else "")
    factor = FACTORS.get(ours, {}).get(unit.lower())
    if factor is None or head not in KNOWN:
        return None
    return Heading(head, factor, "" if factor == 1 else unit)


def _word(text: str) -> str:
    text = text.strip().lower().replace("/", " per ").replace("#", " num ").replace("-", " ")
    word = "_".join(text.replace("_", " ").split())
    rate = _RATE.fullmatch(word)
    if rate:
        item = next((ours for ours, all_ in _ITEMS.items() if rate["item"] in all_), rate["item"])
        word = f"{item}_per_second{rate['each']}"
    return _ALIASES.get(word, word)
