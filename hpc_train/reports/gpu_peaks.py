"""Runs -> the peak of their GPUs, as the profile of their site states it."""

from __future__ import annotations

from collections.abc import Sequence

from hpc_train.base.errors import HpcTrainError
from hpc_train.jobs.operations import PEAK
from hpc_train.runs.run import Manifest, Run
from hpc_train.sites.partition import Partition


def gpu_peaks(own: Sequence[Run]) -> dict[str, dict[str, str]]:
    """Return the condition `gpu_peak_tflops` of each run: `bf16=989.5 fp32=67`.

    A run is absent if its profile was removed, or states no peak of its partition.
    """
    sites: dict[str, tuple[Partition, ...]] = {}
    found = {}
    for run in own:
        if run.manifest is None:
            continue
        site = run.manifest.plan.site
        if site not in sites:
            sites[site] = _partitions(site)
        peaks = _peaks(sites[site], run.manifest)
        if peaks:
            text = " ".join(f"{dtype}={peak:g}" for dtype, peak in sorted(peaks.items()))
            found[run.folder.run_id] = {PEAK: text}
    return found


def _partitions(site: str) -> tuple[Partition, ...]:
    # Foreign logs need no profiles.
    from hpc_train.sites.load import load_site

    try:
        return load_site(site).value.partitions
    except HpcTrainError:
        return ()


def _peaks(partitions: Sequence[Partition], manifest: Manifest) -> dict[str, float]:
    setting = manifest.plan.settings.get("partition")
    names = {manifest.spec.partition, dict(manifest.plan.directives).get("partition")}
    names |= {str(setting.value)} if setting is not None else set()
    named = [one for one in partitions if one.name in names]
    chosen = named or [one for one in partitions if one.default]
    return chosen[0].gpu_peak_tflops if chosen else {}
