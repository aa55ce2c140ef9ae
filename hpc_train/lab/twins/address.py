"""The address of all twins: one of this machine's own, whose answers come at once.

Slurm's programs write a message in two parts, and the kernel holds the second back until the
first is acknowledged, which takes 40 ms. A route may ask for that at once: starting a twin with
accounting then takes two seconds, not ten.
"""

from __future__ import annotations

from hpc_train.lab.commands import ask

ADDRESS = "127.77.0.1"
_ROUTE = ("local", ADDRESS, "dev", "lo", "table", "local")


def add_route() -> None:
    """Quicken the address; without the right or the program to do so, it only stays slow."""
    ask(("ip", "route", "replace", *_ROUTE, "src", ADDRESS, "quickack", "1"))


def remove_route() -> None:
    """Forget about the address."""
    ask(("ip", "route", "del", *_ROUTE))
