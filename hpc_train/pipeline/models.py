"""Records of several logs -> a warning where the logs are of models of different sizes."""

from __future__ import annotations

from collections.abc import Iterable

from hpc_train.model.record import Record

# Padding of the vocabulary grows with tensor parallelism.
_SAME = 0.05


def model_notes(records: Iterable[Record]) -> tuple[str, ...]:
    """Return a note that names the smallest and the largest model, where they are not the same.

    A model is the sum of the parts that a run names, each once.
    """
    parts: dict[str, dict[str, float]] = {}
    for record in records:
        if record.metric == "parameters":
            parts.setdefault(record.run, {})[record.variant] = record.value
    sizes = sorted((sum(own.values()), run) for run, own in parts.items())
    if not sizes or sizes[-1][0] <= sizes[0][0] * (1 + _SAME):
        return ()
    (least, small), (most, large) = sizes[0], sizes[-1]
    return (
        f"the models differ: {least / 1e9:.3g} billion parameters in {small}, {most / 1e9:.3g} in "
        f"{large}; their speeds are of different work, and their ratio is no speedup",
    )
