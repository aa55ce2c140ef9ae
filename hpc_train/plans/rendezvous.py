"""Where the ranks meet, as `explain` shows it, and ports that are better not tried."""

from __future__ import annotations

from hpc_train.model.launching import Rendezvous
from hpc_train.model.plan import Setting
from hpc_train.plans.context import Site

# net.ipv4.ip_local_port_range: what Linux hands out to connections by itself.
_EPHEMERAL = range(32768, 61000)


def rendezvous_settings(site: Site) -> dict[str, Setting]:
    """Return the host and the port, with their reasons."""
    meeting = site.value.rendezvous
    free = f"first free one of {meeting.ports}, tried on rank 0's host when the job starts"
    host = Setting(value=meeting.host + meeting.suffix, origin=site.origin("rendezvous.host"))
    port = Setting(value=meeting.port, origin=site.origin("rendezvous.port"), why=free)
    return {"rendezvous.host": host, "rendezvous.port": port}


def check_ports(site: Site) -> tuple[str, ...]:
    """Warn of ports that any connection may hold before the ranks come."""
    meeting: Rendezvous = site.value.rendezvous
    last = meeting.port + meeting.ports - 1
    if last < _EPHEMERAL.start or meeting.port >= _EPHEMERAL.stop:
        return ()
    return (
        f"{site.near('rendezvous.port')}: ports {meeting.port} to {last} lie in "
        f"{_EPHEMERAL.start}-{_EPHEMERAL.stop - 1}, which Linux hands out itself; better: 61000",
    )
