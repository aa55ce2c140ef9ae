"""MLPerf training logs: `:::MLLOG {..}`.

All values are global. `time_to_train` [s] is the time from run_start to run_stop of a run that did
not fail. `tracked_stats` contains a rate [1/s] and the time of a step [s]; the rates of GPT-3 are
in tokens, those of Mask R-CNN are the mean since the start (variant `running_average`).
`eval_accuracy` is an accuracy, or a loss if the target of the benchmark is a loss. The benchmark is
the condition `model`. A value that several ranks print is counted once. The events `throughput` and
`imgs_sec` are omitted: some submitters print the rate of one GPU, others that of all. `world_size`
is the number of GPUs: `number_of_ranks` or, without it, the number of the machine (`:::SYSJSON`, or
a submission_platform that contains it).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from hpc_train.logs.formats.base import Coded, Hit, Unreadable, finite, scan_object, whole
from hpc_train.logs.line import Line

_OF_THE_JOB = {"global_batch_size": "global_batch_size", "number_of_ranks": "world_size"}
_WORDS = frozenset({"submission_benchmark", "submission_platform", "submission_org"})
# Most events contain no measurement.
_TELLING = frozenset(
    {
        *_OF_THE_JOB, *_WORDS, "run_start", "run_stop", "max_sequence_length", "eval_accuracy",
        "train_loss", "tracked_stats",
    }
)  # fmt: skip
_TOKENS = frozenset({"gpt3"})
_ENDS_AT_LOSS = frozenset({"gpt3", "llama2_70b_lora", "llama31_8b", "llama31_405b", "flux1"})
# Their quality is a distance, an error rate or a score, which is neither accuracy nor loss.
_ENDS_OTHERWISE = frozenset({"stable_diffusion", "rnnt", "gnmt", "transformer", "minigo"})
_LOSSES = ("reduced_train_loss", "train_loss", "loss")
_STEP_TIMES = ("train_step_time", "train_step_timing", "train_step_timing in s")
# With this key, all statistics are means since the start, from maskrcnn_benchmark's meters.
_MEANS = "loss_rpn_box_reg"
_COUNTS = ("samples_count", "step", "epoch_num")
_PLACES = ("epoch_num", "step_num", "samples_count", "epoch", "step")


class Mlperf(Coded):
    """Parser of MLPerf logs; `words` and `status` contain strings."""

    def __init__(self) -> None:
        self.words: dict[str, str] = {}
        self.status = ""
        self.started_ms: float | None = None
        self._job: dict[str, float] = {}
        self._voice: int | None = None

    def read(self, line: Line) -> Iterator[Hit | Unreadable]:
        """Yield the values of the events on a line."""
        if gpus := gpus_of_system(line.text):
            yield from self._machine(gpus)
        for event in events_in(line.text):
            if isinstance(event, Unreadable):
                yield event
            elif event.key in _TELLING:
                yield from self._hits(event, line.rank)

    def _hits(self, event: Event, rank: int | None) -> Iterator[Hit]:
        key, value = event.key, finite(event.value)
        if key in _WORDS and isinstance(event.value, str):
            yield from self._word(key, event.value)
            if key == "submission_platform":
                yield from self._machine(gpus_of_platform(event.value))
        elif key == "run_start" and self.started_ms is None:
            self.started_ms = event.time_ms
        elif key == "run_stop":
            yield from self._stop(event)
        elif key == "max_sequence_length" and value:
            self._job[key] = value
        elif key in _OF_THE_JOB and value:
            self._job[key] = value
            yield Hit(_OF_THE_JOB[key], value, "global", once=key)
        elif key == "eval_accuracy" and value is not None:
            yield from self._quality(value, event)
        elif key == "train_loss" and value is not None and self._speaks(rank):
            yield Hit("loss", value, "global", self._step(event), once=_place(event))
        elif key == "tracked_stats" and isinstance(event.value, dict) and self._speaks(rank):
            yield from self._tracked(event.value, event)

    def _word(self, key: str, value: str) -> Iterator[Hit]:
        """Record a string; a different benchmark is a different model."""
        if key == "submission_benchmark" and key not in self.words:
            yield Hit("condition", 1.0, "global", variant=f"model={value}", once=key)
        self.words.setdefault(key, value)

    def _machine(self, gpus: int | None) -> Iterator[Hit]:
        """Yield the GPUs of the machine, unless the run itself has stated the number."""
        if gpus and not self._job.keys() & {"machine", "number_of_ranks"}:
            self._job["machine"] = gpus
            yield Hit("world_size", gpus, "global", once="machine")

    def _stop(self, event: Event) -> Iterator[Hit]:
        if self.status or self.started_ms is None:
            return
        status, success = event.metadata.get("status"), event.metadata.get("success")
        if isinstance(status, str):
            self.status = status
        else:
            self.status = "aborted" if success in (False, "false", "False") else "success"
        if self.status == "success" and event.time_ms >= self.started_ms:
            yield Hit(
                "time_to_train", (event.time_ms - self.started_ms) / 1000, "global", once="run"
            )

    def _quality(self, value: float, event: Event) -> Iterator[Hit]:
        benchmark, once = self.words.get("submission_benchmark", ""), f"{_place(event)} {value!r}"
        if benchmark in _ENDS_AT_LOSS:
            yield Hit("loss", value, "global", self._step(event), variant="eval", once=once)
        elif benchmark not in _ENDS_OTHERWISE and 0 <= value <= 1:
            step = self._step(event) or whole(event.metadata.get("epoch_num"))
            yield Hit("accuracy", value, "global", step, once=once)

    def _tracked(self, stats: dict[str, object], event: Event) -> Iterator[Hit]:
        once, step = _place(event), self._step(event)
        variant = "running_average" if _MEANS in stats else ""
        rate = finite(stats.get("throughput"))
        if rate is not None:
            tokens = self.words.get("submission_benchmark") in _TOKENS
            metric = "tokens_per_second" if tokens else "samples_per_second"
            key = once and f"{once} {rate!r}"
            yield Hit(metric, rate, "global", step, variant=variant, once=key)
        for names, metric in ((_STEP_TIMES, "step_time"), (_LOSSES, "loss")):
            value = next((finite(stats[name]) for name in names if name in stats), None)
            if value is not None:
                yield Hit(metric, value, "global", step, variant=variant, once=once)

    def _step(self, event: Event) -> int | None:
        """Return the step of an event; None if the unit of its `step` is unknown.

        With an epoch, the number counts steps; else it counts samples or tokens if the batch size
        divides it.
        """
        if "epoch" in event.metadata or "step_num" in event.metadata:
            return whole(event.metadata.get("step", event.metadata.get("step_num")))
        batch = int(self._job.get("global_batch_size", 0))
        if self.words.get("submission_benchmark") in _TOKENS:
            batch *= int(self._job.get("max_sequence_length", 0))
        counts = (whole(event.metadata.get(key)) for key in _COUNTS)
        place = next(filter(None, counts), 0)
        return place // batch if batch > 1 and place and place % batch == 0 else None

    def _speaks(self, rank: int | None) -> bool:
        """Whether the statistics of a rank are used: only the first rank that prints any counts."""
        if self._voice is None:
            self._voice = rank
        return rank == self._voice


def _place(event: Event) -> str:
    found = [f"{key} {place}" for key in _PLACES if (place := event.metadata.get(key)) is not None]
    return " ".join(found)


_MARK = ":::SYSJSON "
# `2xXE8545x4A100-SXM-40GB`; and DGX with eight GPUs, which those before the A100 did not all have.
_NAMED = re.compile(
    r"(?P<nodes>\d{1,5})x(?:.{1,60}?x(?P<gpus>\d{1,2})x?(?:A|B|GB|H|L|V|MI)\d{2,3}"
    r"|(?:NVIDIA )?DGX[ -]?(?P<dgx>[AHB]\d00))"
)
_DGX = 8
_MOST = 10**6
_START = re.compile(r":::MLLOG +(?=\{)")
# Locating an error in JSON takes as long as reading all text before it.
_BROKEN = 64


class Event(NamedTuple):
    """What happened, and when [ms since 1970]."""

    key: str
    time_ms: float
    value: object
    metadata: Mapping[str, object]


def events_in(text: str) -> Iterator[Event | Unreadable]:
    """Yield every event on a line, whatever stands before, between and after them."""
    done = broken = 0
    for match in _START.finditer(text):
        if match.start() < done:
            continue
        event, done = _event(text, match.end())
        yield event or Unreadable()
        broken += event is None
        if broken > _BROKEN:
            return


def _event(text: str, start: int) -> tuple[Event | None, int]:
    """Return an event and where it ends; None if it is damaged."""
    body, end = scan_object(text, start) or ({}, start)
    key, time_ms = body.get("key"), finite(body.get("time_ms"))
    if not isinstance(key, str) or time_ms is None:
        return None, end
    metadata = body.get("metadata")
    return Event(
        key, time_ms, body.get("value"), metadata if isinstance(metadata, dict) else {}
    ), end


def gpus_of_system(text: str) -> int | None:
    """Return the accelerators of all nodes, by the description in a line `:::SYSJSON {..}`."""
    start = text.find(_MARK)
    found = scan_object(text, start + len(_MARK)) if start >= 0 else None
    if found is None:
        return None
    # Written as numbers or as text.
    counts = [str(found[0].get(key)) for key in ("number_of_nodes", "accelerators_per_node")]
    if not all(one.isdecimal() and one.isascii() and len(one) < 8 for one in counts):
        return None
    gpus = int(counts[0]) * int(counts[1])
    return gpus if 0 < gpus <= _MOST else None


def gpus_of_platform(name: str) -> int | None:
    """Return the GPUs of a machine whose name contains their number: `8xNVIDIA DGX H100`."""
    match = _NAMED.match(name)
    if match is None:
        return None
    gpus = int(match["nodes"]) * int(match["gpus"] or _DGX)
    return gpus if 0 < gpus <= _MOST else None
