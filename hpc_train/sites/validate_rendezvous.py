"""Validation of the rendezvous of a profile: the method for rank 0's address."""

from __future__ import annotations

import re

from hpc_train.errors import SiteProfileError, nearest
from hpc_train.model.site import SiteProfile
from hpc_train.model.site_launch import HOST_METHOD
from hpc_train.model.value import Sourced

_METHODS = (
    "loopback",
    "first-host",
    "batch-host",
    "hostname-ip",
    "resolver",
    "address:N",
    "remote-address:N",
    "interface:NAME",
)
_LAST_PORT = 65535
_NAMES = ("first-host", "batch-host", "resolver")


def check_rendezvous(site: Sourced[SiteProfile]) -> None:
    """Refuse an unknown method, and a suffix of an address.

    Raises:
        SiteProfileError: with the nearest method.
    """
    meeting = site.value.rendezvous
    where = site.near("rendezvous.host")
    if not re.fullmatch(HOST_METHOD, meeting.host):
        raise SiteProfileError(
            f"{where}: rendezvous.host: {meeting.host!r} is none"
            f"{nearest(meeting.host, _METHODS)}; allowed: {', '.join(_METHODS)} (N from 1 to 9)"
        )
    last = meeting.port + meeting.ports - 1
    if last > _LAST_PORT:
        raise SiteProfileError(
            f"{site.near('rendezvous.ports')}: ports {meeting.port} to {last}, but the last port "
            f"is {_LAST_PORT}",
            f"ports: {_LAST_PORT - meeting.port + 1} or fewer",
        )
    if meeting.suffix and meeting.host not in _NAMES:
        raise SiteProfileError(
            f"{site.near('rendezvous.suffix')}: "
            f"a suffix needs a host name, which {meeting.host} does not give; use it with "
            f"{', '.join(_NAMES)}"
        )
