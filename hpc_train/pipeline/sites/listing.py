"""Profiles -> one line each."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from hpc_train.errors import HpcTrainError, SiteProfileError
from hpc_train.model.site import Confidence, SiteProfile
from hpc_train.model.value import Value
from hpc_train.sites.load import load_site
from hpc_train.sites.machine import Machine
from hpc_train.sites.search import label_of, layer_of, profile_files

_WEAKEST: tuple[Confidence, ...] = ("low", "medium", "high")


class ProfileSummary(Value, frozen=True, kw_only=True):
    """One profile in `site list`; `gpus` as `4 a100`, unknown values are empty."""

    name: str
    scheduler: str
    gpus: tuple[str, ...]
    fabric: str
    launchers: tuple[str, ...]
    verified_on: str
    confidence: str
    description: str
    file: str
    layer: str


def list_sites() -> Iterator[ProfileSummary | HpcTrainError]:
    """Yield each profile on the search path, or its error."""
    for path in profile_files():
        try:
            yield _listed(load_site(str(path), Machine(cpus=1, gpus=0)).value, path)
        except SiteProfileError as failure:
            yield failure


def confidence_of(profile: SiteProfile) -> Confidence | None:
    """Return the profile's confidence, else that of its weakest source."""
    found = [source.confidence for source in profile.sources]
    return profile.confidence or next((word for word in _WEAKEST if word in found), None)


def _listed(profile: SiteProfile, path: Path) -> ProfileSummary:
    nodes = [
        f"{one.gpus_per_node} {one.gpu_type or one.gpu_model or 'GPUs'}"
        for one in profile.partitions
        if one.gpus_per_node and profile.scheduler != "local"
    ]
    network = profile.network
    return ProfileSummary(
        name=profile.name,
        scheduler=profile.scheduler,
        gpus=tuple(dict.fromkeys(nodes)),
        fabric=(network.fabric if network else None) or "",
        launchers=profile.launchers.allowed,
        verified_on=profile.verified_on or "",
        confidence=confidence_of(profile) or "",
        description=profile.description,
        file=label_of(path),
        layer=layer_of(path),
    )
