"""Rules of backends, a site profile and the installed torch -> the report on backends."""

from __future__ import annotations

from hpc_train.model.report import Report
from hpc_train.model.site import SiteProfile
from hpc_train.model.site_network import Network
from hpc_train.pipeline.bench import python_command
from hpc_train.pipeline.detection.default_site import choose_site, load_choice
from hpc_train.plans.distributed_backend import SOURCE, automatic_backend
from hpc_train.probe.software import this_torch
from hpc_train.reports.backend_report import BackendInput, backend_report


def advise_backend(site: str | None) -> Report:
    """Return the rules, what `backend: auto` selects on a site, and what torch was built with.

    Raises:
        SiteProfileError: there is no such site.
    """
    _, profile = load_choice(choose_site(site))
    network = profile.value.network or Network()
    found = BackendInput(
        site=profile.value.name,
        fabric=network.fabric or "",
        automatic={
            "with GPUs" if gpus else "without GPUs": _automatic(network, gpus=gpus)
            for gpus in sorted(_kinds(profile.value), reverse=True)
        },
        torch=this_torch(python_command()),
        source=SOURCE,
    )
    return backend_report(found)


def _kinds(site: SiteProfile) -> set[bool]:
    """Return whether nodes have GPUs: of a profile without partitions, both."""
    return {bool(one.gpus_per_node) for one in site.partitions} or {True, False}


def _automatic(network: Network, *, gpus: bool) -> tuple[str, str]:
    setting = automatic_backend(network, gpus=gpus)
    return str(setting.value), setting.why
