"""Dictionaries that Hugging Face's Trainer logs -> measurements.

The loss is the mean over ranks and over the logged steps. Samples and steps per second are those
of the whole job over the whole run. `train_tokens_per_second` is per device in the summary, and of
the whole job together with `num_input_tokens_seen`. Memory is in GiB, of the printing rank.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from hpc_train.model.record import Scope
from hpc_train.records.parsing.log_parser import Hit
from hpc_train.records.parsing.printed_numbers import number, seconds

TrainerLog = Mapping[str, str]

_LOGGED: dict[str, tuple[str, Scope]] = {
    "loss": ("loss", "global"),
    "grad_norm": ("grad_norm", "global"),
    "learning_rate": ("learning_rate", "global"),
    "lr": ("learning_rate", "global"),
    "memory(GiB)": ("memory", "per_rank"),
    "memory/max_active (GiB)": ("memory", "per_rank"),
    "memory/max_mem_active(gib)": ("memory", "per_rank"),
    "tokens_per_second_per_gpu": ("tokens_per_second", "per_gpu"),
    "tokens/train_per_sec_per_gpu": ("tokens_per_second", "per_gpu"),
}
# Keys that distinguish a log of the Trainer from other dictionaries with a loss.
_COMPANIONS = frozenset({"epoch", "learning_rate", "grad_norm"})
_STEP = (
    *("global_step/max_steps", "steps[global_step/max_steps]", "iteration"),
    *("current_steps", "global_step", "step"),
)
_SUMMARY: dict[str, tuple[str, Scope]] = {
    "train_samples_per_second": ("samples_per_second", "global"),
    "train_tokens_per_second": ("tokens_per_second", "per_gpu"),
}
_RATES = frozenset({"train_samples_per_second", "train_steps_per_second"})


def hits_of_log(log: TrainerLog, step: int | None = None, steps: int = 1) -> Iterator[Hit]:
    """Yield what one dictionary states; `step` is the current step, used if it names none.

    Copies by other ranks are the same measurement.
    """
    if "train_runtime" in log and _RATES & log.keys():
        yield from summary_hits(log)
    elif "loss" in log and _COMPANIONS & log.keys():
        yield from _logged(log, step, steps)
    elif "eval_accuracy" in log:
        yield from accuracy_hits(log, step_of(log) or step)


def summary_hits(log: TrainerLog) -> Iterator[Hit]:
    """Yield the values of the summary after the training, in a dictionary or a table."""
    runtime = seconds(log["train_runtime"]) if "train_runtime" in log else None
    if runtime is not None:
        yield Hit("time_to_train", runtime, "global", once="summary")
    for key, (metric, scope) in _SUMMARY.items():
        value = number(log[key]) if key in log else None
        if value is not None:
            yield Hit(metric, value, scope, once="summary")


def accuracy_hits(log: TrainerLog, step: int | None = None) -> Iterator[Hit]:
    """Yield the accuracy of an evaluation, a fraction."""
    value = number(log["eval_accuracy"])
    if value is not None:
        yield Hit("accuracy", value, "global", step, once=f"{step} {log.get('epoch')} {value}")


def step_of(log: TrainerLog) -> int | None:
    """Return the optimiser step that a dictionary names."""
    text = next((log[key] for key in _STEP if key in log), "")
    done = text.partition("/")[0]
    return int(done) if done.isdecimal() and len(done) < 16 else None


def total_of(log: TrainerLog) -> int | None:
    """Return the number of optimiser steps of the whole training, where a dictionary names it."""
    text = next((log[key].partition("/")[2] for key in _STEP if "/" in log.get(key, "")), "")
    text = text or log.get("total_steps", "")
    return int(text) if text.isdecimal() and len(text) < 16 else None


def _logged(log: TrainerLog, step: int | None, steps: int) -> Iterator[Hit]:
    named = step_of(log)
    # Ranks print the same reduced loss; the epoch alone is rounded, and shared by many steps.
    copy = " ".join(f"{log.get(key)}" for key in ("loss", *sorted(_COMPANIONS))) + f" {named}"
    step = step if named is None else named
    for key, (metric, scope) in _LOGGED.items():
        value = number(log[key]) if key in log else None
        if value is not None:
            yield Hit(metric, value, scope, step, steps=steps, once=copy)
    if "num_input_tokens_seen" in log:
        rate = number(log.get("train_tokens_per_second", ""))
        if rate is not None:
            yield Hit("tokens_per_second", rate, "global", step, once=copy)
