"""`step` events as the workload prints them: most lines of most logs, hence decoded apart."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from hpc_train.records.parsers.base import Hit

_AS_PRINTED = b'{"v":1,"event":"step",'

_Whole = Annotated[int, msgspec.Meta(ge=0, lt=10**15)]


class StepEvent(msgspec.Struct, gc=False, forbid_unknown_fields=True):
    """The keys that the workload writes, and no other one: those are for the slower way."""

    v: int
    event: Literal["step"]
    rank: _Whole | None = None
    epoch: _Whole | None = None
    step: _Whole | None = None
    step_time: float | None = None
    samples: float | None = None
    loss: float | None = None


_decode = msgspec.json.Decoder(StepEvent).decode


def step_event(body: bytes) -> StepEvent | None:
    """Decode a step of the workload; None if it has another form, is damaged or something else."""
    if not body.startswith(_AS_PRINTED):
        return None
    try:
        event = _decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
    return None if None in (event.step_time, event.samples, event.loss) else event


def step_hits(event: StepEvent, rank: int | None) -> list[Hit]:
    """Return what a step states, in the order in which the workload writes it."""
    step, hits = event.step, []
    # Written out: a loop over the names costs as much again as all the rest.
    if event.step_time is not None:
        hits.append(Hit("step_time", event.step_time, "per_rank", step, rank))
    if event.samples is not None:
        hits.append(Hit("samples", event.samples, "per_rank", step, rank))
    if event.loss is not None:
        hits.append(Hit("loss", event.loss, "per_rank", step, rank))
    return hits
