"""What a lab needs of the machine, checked before anything is made."""

from __future__ import annotations

import ipaddress
import os
from collections.abc import Mapping
from pathlib import Path

from hpc_train.lab.commands import ask, installed, must
from hpc_train.lab.errors import LabError
from hpc_train.lab.network import SUBNETS
from hpc_train.lab.settings import Settings
from hpc_train.lab.slurm_conf import MARK

_PACKAGES = {
    "slurmctld": "slurmctld",
    "slurmd": "slurmd",
    **dict.fromkeys(("srun", "sinfo", "squeue"), "slurm-client"),
    "munged": "munge",
    **dict.fromkeys(("ip", "tc"), "iproute2"),
    **dict.fromkeys(("nsenter", "unshare"), "util-linux"),
    "mount": "mount",
    "hostname": "hostname",
}
ACCOUNTING_PACKAGES = {
    "slurmdbd": "slurmdbd",
    "sacctmgr": "slurm-client",
    **dict.fromkeys(("mariadbd", "mariadb-install-db"), "mariadb-server"),
    "mariadb-admin": "mariadb-client",
}


def check_root() -> None:
    """Refuse to work as an ordinary user.

    Raises:
        LabError: the user is not root.
    """
    if os.geteuid() != 0:
        raise LabError("the lab makes networks and mounts, so it needs root", "run it with sudo")


def check_machine(settings: Settings) -> None:
    """Check programs and permissions.

    Raises:
        LabError: something is missing; all missing programs are named at once.
    """
    require({**_PACKAGES, **(ACCOUNTING_PACKAGES if settings.accounting else {})})
    # `lo up` needs the right to change networks, the namespaces that to make them.
    done = ask(("unshare", "--net", "--uts", "--mount", "ip", "link", "set", "lo", "up"))
    if done.returncode != 0:
        raise LabError(
            f"no namespaces can be made here: {done.stderr.strip()}",
            "a container needs --privileged, or --cap-add SYS_ADMIN,NET_ADMIN,MKNOD",
        )


def require(needed: Mapping[str, str]) -> None:
    """Check that programs are there, each by its package.

    Raises:
        LabError: some are missing; all are named at once.
    """
    absent = {program: package for program, package in needed.items() if not installed(program)}
    if absent:
        packages = " ".join(dict.fromkeys(absent.values()))
        raise LabError(f"not installed: {', '.join(absent)}", f"apt-get install {packages}")


def check_free(settings: Settings) -> None:
    """Check, once old labs are gone, that folder and networks are nobody else's.

    Raises:
        LabError: one of them is.
    """
    folder = Path(settings.folder)
    if os.path.lexists(folder) and not is_lab_folder(folder) and not _is_empty(folder):
        raise LabError(f"{folder} exists and is no lab of root's", "name another one with --dir")
    for line in must(("ip", "-4", "route", "show", "table", "all")).splitlines():
        if taken := overlap(line):
            raise LabError(
                f"the lab's network {taken} is in use here: {line.strip()}",
                "remove that route or interface; the lab's networks are fixed",
            )


def overlap(route: str) -> str:
    """Return the lab's network that a line of `ip route` reaches into, or nothing."""
    words = [word for word in route.split() if word[0].isdigit()]
    if not words or route.startswith("default"):
        return ""
    try:
        network = ipaddress.ip_network(words[0], strict=False)
    except ValueError:
        return ""
    ours = (subnet for subnet in SUBNETS if network.overlaps(ipaddress.ip_network(subnet)))
    # A default route, or a VPN's half of the Internet, is no conflict: ours is more specific.
    return next((subnet for subnet in ours if network.prefixlen >= 16), "")


def is_lab_folder(folder: Path) -> bool:
    """Whether a folder was made by `hpctrain lab up`, and not by another user in its place."""
    conf = folder / "slurm.conf"
    if folder.is_symlink() or not conf.is_file() or folder.stat().st_uid != 0:
        return False
    return conf.read_text(encoding="utf-8", errors="replace").startswith(MARK)


def _is_empty(folder: Path) -> bool:
    return folder.is_dir() and not folder.is_symlink() and not any(folder.iterdir())
