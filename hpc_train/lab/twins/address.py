"""The address of all twins: a loopback address with a route without delayed acknowledgements.

Slurm's programs write a message in two parts, and the kernel delays the second until the first is
acknowledged, which takes 40 ms. A route can request immediate acknowledgement: starting a twin with
accounting then takes two seconds instead of ten.
"""

from __future__ import annotations

from hpc_train.lab.system_programs import ask

ADDRESS = "127.77.0.1"
_ROUTE = ("local", ADDRESS, "dev", "lo", "table", "local")


def add_route() -> None:
    """Add the route; without the permission or the program for it, the address is only slower."""
    ask(("ip", "route", "replace", *_ROUTE, "src", ADDRESS, "quickack", "1"))


def remove_route() -> None:
    """Remove the route."""
    ask(("ip", "route", "del", *_ROUTE))
