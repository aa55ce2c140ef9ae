"""The laws of scaling themselves: what measurements are made of whose fit is known."""

from typing import Any


def amdahl(q: Any, f: float) -> Any:
    """1/(f + (1 - f)/q): the share f of the work is serial."""
    return 1 / (f + (1 - f) / q)


def gustafson(q: Any, f: float) -> Any:
    """q - f (q - 1): f is the serial share of the parallel run."""
    return q - f * (q - 1)


def usl(q: Any, a: float, b: float) -> Any:
    """q/(1 + a (q - 1) + b q (q - 1)): contention a, coherence b."""
    return q / (1 + a * (q - 1) + b * q * (q - 1))


def usl_peak(a: float, b: float) -> float:
    """Where `usl` is highest."""
    return float(((1 - a) / b) ** 0.5)
