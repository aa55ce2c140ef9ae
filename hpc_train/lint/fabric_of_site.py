"""The fabric of a site, as the rules on NCCL distinguish it."""

from __future__ import annotations

from hpc_train.lint.rule import LintFabric
from hpc_train.model.site import SiteProfile

# RoCE uses the same verbs; Google's stacks are different.
_FABRICS: dict[str, LintFabric] = {
    "infiniband": "infiniband",
    "roce": "infiniband",
    "slingshot": "slingshot",
    "efa": "efa",
    "ethernet": "ethernet",
}


def fabric_of(site: SiteProfile) -> LintFabric | None:
    """Return the profile's fabric, or the one that its variables belong to."""
    network = site.network
    if network is not None and network.fabric is not None:
        return _FABRICS.get(network.fabric)
    if site.env.get("FI_PROVIDER") == "efa":
        return "efa"
    if site.env.get("FI_PROVIDER") == "cxi" or any(name.startswith("FI_CXI_") for name in site.env):
        return "slingshot"
    return "infiniband" if "NCCL_IB_HCA" in site.env else None
