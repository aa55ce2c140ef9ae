"""Facts about the runs -> lines, all or the most important ones."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from hpc_train.model.report import Fact

# Each line of the short block, and the facts on it.
_SHORT = {
    "when": ("jobs", "started", "ended"),
    "where": ("site", "partition", "qos", "account", "nodes", "exclusive"),
    "hardware": ("gpu", "gpu_type", "device", "adapters", "transport"),
    "versions": ("torch", "cuda", "rocm", "nccl", "plugin", "container", "modules", "hpctrain"),
    "training": ("model", "data", "precision", "layout", "seed"),
    "code": ("commit", "config", "template", "profile"),
    "not recorded": ("not recorded",),
}
_SHOWN = 3
_LISTED = 20


def fact_lines(facts: Sequence[Fact]) -> tuple[str, ...]:
    """Return a line for each fact; if values differ, with the number of runs with each."""
    return tuple(f"{fact.name}: {_values(fact, _LISTED)}" for fact in facts)


def short_lines(facts: Sequence[Fact]) -> tuple[str, ...]:
    """Return about eight lines with the most important facts."""
    return tuple(_short({fact.name: fact for fact in facts}))


def _short(facts: dict[str, Fact]) -> Iterator[str]:
    for heading, names in _SHORT.items():
        shown = [facts[name] for name in names if name in facts and _says(facts[name])]
        if heading in names:
            yield from (f"{heading}: {_values(fact, _SHOWN)}" for fact in shown)
        elif shown:
            parts = (f"{fact.name} {_values(fact, _SHOWN)}" for fact in shown)
            yield f"{heading}: {'; '.join(parts)}"


def _says(fact: Fact) -> bool:
    return any(text != "none" for text, _ in fact.values)


def _values(fact: Fact, most: int) -> str:
    alone = len(fact.values) == 1 or all(count == 1 for _, count in fact.values)
    texts = [text if alone else f"{text} ({count}x)" for text, count in fact.values[:most]]
    more = len(fact.values) - most
    return ", ".join(texts) + (f" and {more} more" if more > 0 else "")
