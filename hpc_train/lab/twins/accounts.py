"""The accounts and qualities of service in a twin's slurmdbd."""

from __future__ import annotations

from hpc_train.lab.twins.slurm_conf import cluster_name
from hpc_train.model.partition import ANY, Qos
from hpc_train.model.site import SiteProfile
from hpc_train.model.site_facilities import sample_account

# Slurm defines this one itself.
NORMAL = "normal"


def has_accounting(profile: SiteProfile) -> bool:
    """Whether the profile needs accounting: it has a quality of service."""
    return bool(_names(profile))


def account_settings(profile: SiteProfile) -> tuple[tuple[str, ...], ...]:
    """Return the commands of sacctmgr."""
    accounts = ",".join(accounts_of(profile))
    names = ",".join(dict.fromkeys((NORMAL, *_names(profile))))
    return (
        ("add", "account", accounts),
        *_qualities(profile),
        # Set for the cluster, so that it also applies to jobs without an account.
        ("modify", "cluster", cluster_name(profile), "set", f"qos={names}"),
        ("add", "user", "root", f"account={accounts}"),
    )


def accounts_of(profile: SiteProfile) -> tuple[str, ...]:
    """Return the accounts of the twin: the profile's example, with each suffix."""
    base = sample_account(profile.account)
    suffixes = [one.select.account_suffix or "" for one in profile.partitions if one.select]
    suffixed = (base if base.endswith(suffix) else base + suffix for suffix in suffixes)
    return tuple(dict.fromkeys((base, *suffixed)))


def _names(profile: SiteProfile) -> tuple[str, ...]:
    listed = [qos.name for qos in profile.qos if qos.name != ANY]
    selected = [one.select.qos for one in profile.partitions if one.select and one.select.qos]
    return tuple(dict.fromkeys((*listed, *selected)))


def _qualities(profile: SiteProfile) -> tuple[tuple[str, ...], ...]:
    """Return one command for all QOS with the same limits, because each command is slow."""
    limits = {qos.name: _limits(qos) for qos in profile.qos}
    groups: dict[tuple[str, ...], list[str]] = {}
    for name in _names(profile):
        if name != NORMAL:
            groups.setdefault(limits.get(name, ()), []).append(name)
    normal = limits.get(NORMAL, ())
    return (
        *(("add", "qos", ",".join(names), *words) for words, names in groups.items()),
        *((("modify", "qos", NORMAL, "set", *normal),) if normal else ()),
    )


def _limits(qos: Qos) -> tuple[str, ...]:
    tres = {"node": qos.max_nodes, "gres/gpu": qos.max_gpus}
    each = ",".join(f"{name}={limit}" for name, limit in tres.items() if limit is not None)
    wall = f"MaxWall={qos.max_time}" if qos.max_time else ""
    words = (wall, f"MaxTRESPerJob={each}" if each else "")
    found = tuple(word for word in words if word)
    # Without the flag, a job beyond the limit would pend for ever.
    return (*found, "Flags=DenyOnLimit") if found else ()
