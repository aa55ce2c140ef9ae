"""The account, the users and the qualities of service in a twin's slurmdbd.

Slurm enforces the limits of a quality of service only for jobs of a known user and account, and a
profile knows neither. The twin therefore has one account, which all users of the machine may use.
The job_submit plug-in compares the account of a job with the profile's pattern, then replaces it
with this one.
"""

from __future__ import annotations

import os
import pwd
import re
from collections.abc import Sequence

from hpc_train.lab.twins.slurm_conf import cluster_name
from hpc_train.sites.partition import ANY, Qos
from hpc_train.sites.profile import SiteProfile

# The account that each job is charged to.
ACCOUNT = "any"
# Slurm defines this one itself.
NORMAL = "normal"
_USER = re.compile(r"[A-Za-z0-9_][\w.@-]*", re.ASCII)
_MOST_USERS = 1000


def has_accounting(profile: SiteProfile) -> bool:
    """Whether the profile needs accounting: it has a quality of service."""
    return bool(_names(profile))


def account_settings(profile: SiteProfile, users: Sequence[str]) -> tuple[tuple[str, ...], ...]:
    """Return the commands of sacctmgr."""
    names = ",".join(dict.fromkeys((NORMAL, *_names(profile))))
    return (
        ("add", "account", ACCOUNT),
        *_qualities(profile),
        # Set for the cluster, so that it also applies to jobs without an account.
        ("modify", "cluster", cluster_name(profile), "set", f"qos={names}"),
        ("add", "user", ",".join(users), f"account={ACCOUNT}"),
    )


def users_of_machine() -> tuple[str, ...]:
    """Return root, the user who called sudo, and the users that the machine lists."""
    listed = [entry.pw_name for entry in pwd.getpwall()][:_MOST_USERS]
    names = sorted({os.environ.get("SUDO_USER", "root"), *listed} - {"root"})
    return ("root", *(name for name in names if _USER.fullmatch(name)))


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
