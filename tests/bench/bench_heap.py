"""100,000 small logs: `report` of the folder beside `collect` of it.

Of twenty lines each: torchtitan's and Megatron's do not say how many ranks they had, so that each
is a series of its own; those with hpctrain's events are repetitions of four sizes.
"""

from __future__ import annotations

import random
import sys
from pathlib import Path

from tests.bench.whole_process import compared, main

_HPCTRAIN = [sys.executable, "-m", "hpc_train"]
FOLDER = Path("build/bench/heap")
LINES = 20
_TITAN = (
    "[titan] 2026-01-01 00:00:{step:02},932 - root - INFO - step: {step:2}  loss: {loss:7.4f}  "
    "grad_norm:  2.4210  memory: 60.52GiB(88.86%)  tps: {tps:,}  tflops: 376.65  mfu: 33.55%"
)
_MEGATRON = (
    " [2026-01-01 00:00:{step:02}] iteration {step:8}/     100 | consumed samples: {seen:12} |"
    " elapsed time per iteration (ms): {ms:.1f} | throughput per GPU (TFLOP/s/GPU): 300.1 |"
    " learning rate: 1.0E-04 | global batch size:    64 | lm loss: {loss:.6E} | loss scale: 1.0 |"
    " grad norm: 1.5 | number of skipped iterations:   0 | number of nan iterations:   0 |"
)
_STEP = (
    '@hpct {{"v":1,"event":"step","rank":0,"epoch":1,"step":{step},"step_time":{seconds:.6f},'
    '"samples":64,"loss":{loss:.4f}}}'
)
_START = '@hpct {{"v":1,"event":"start","rank":0,"world_size":{ranks},"global_batch_size":64}}\n'


def small_log(chance: random.Random, number: int, *, mixed: bool) -> str:
    """Return one log."""
    ranks = (1, 2, 4, 8)[number % 4]
    form = (_TITAN, _MEGATRON, _STEP)[number % 3] if mixed else _STEP
    lines = [_START.format(ranks=ranks)] if form is _STEP else []
    for step in range(1, LINES + 1 - len(lines)):
        slow = chance.uniform(1.0, 1.1)
        lines.append(
            form.format(
                step=step, seen=64 * step, loss=9 - step / 10, ms=900 * slow,
                tps=int(5400 / slow), seconds=0.15 * slow / ranks,
            ) + "\n"
        )  # fmt: skip
    return "".join(lines)


def heap_of(folder: Path, count: int, *, mixed: bool) -> Path:
    """Write the logs, unless they are there."""
    heap = folder / f"{'mixed' if mixed else 'events'}-{count}"
    if not heap.exists():
        chance, fresh = random.Random(1234), heap.with_suffix(".new")
        fresh.mkdir(parents=True, exist_ok=True)
        for number in range(count):
            text = small_log(chance, number, mixed=mixed)
            (fresh / f"job-{number}.out").write_text(text, encoding="utf-8")
        fresh.rename(heap)
    return heap


def measure(quick: bool) -> tuple[str, list[tuple[str, ...]]]:
    """Measure both verbs on both heaps; return what was read, and the rows."""
    count, rounds = (10_000, 3) if quick else (100_000, 3)
    rows: list[tuple[str, ...]] = []
    for mixed in (False, True):
        heap, kind = (
            str(heap_of(FOLDER, count, mixed=mixed)),
            "three kinds" if mixed else "one kind",
        )
        sides = [
            (f"collect -o, {kind}", [*_HPCTRAIN, "collect", heap, "-o", str(FOLDER / "heap.csv")]),
            (f"report, {kind}", [*_HPCTRAIN, "report", heap]),
        ]
        rows += compared(sides, rounds, 2.0)
    return f"{count} logs of {LINES} lines", rows


if __name__ == "__main__":
    main("Many small logs", __doc__ or "", measure)
