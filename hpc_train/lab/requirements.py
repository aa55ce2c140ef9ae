"""Requirements of a lab or twin, checked before anything is created."""

import ipaddress
import os
from collections.abc import Mapping
from pathlib import Path

from hpc_train.base.errors import LabError
from hpc_train.lab.daemons import ask, installed, must
from hpc_train.lab.settings import SUBNETS, Settings
from hpc_train.lab.slurm_conf import MARK

_PACKAGES = {
    "slurmctld": "slurmctld",
    "slurmd": "slurmd",
    **dict.fromkeys(("srun", "sinfo", "squeue", "sbatch", "scontrol", "scancel"), "slurm-client"),
    "munged": "munge",
    **dict.fromkeys(("ip", "tc"), "iproute2"),
    **dict.fromkeys(("nsenter", "unshare"), "util-linux"),
    "mount": "mount",
    "hostname": "hostname",
}
_TWIN_PACKAGES = {
    "slurmctld": "slurmctld",
    **dict.fromkeys(("sbatch", "scontrol"), "slurm-client"),
    "munged": "munge",
}
_ACCOUNTING_PACKAGES = {
    "slurmdbd": "slurmdbd",
    "sacctmgr": "slurm-client",
    **dict.fromkeys(("mariadbd", "mariadb-install-db"), "mariadb-server"),
    "mariadb-admin": "mariadb-client",
}


def check_root() -> None:
    """Check that the user is root.

    Raises:
        LabError: the user is not root.
    """
    if os.geteuid() != 0:
        raise LabError(
            "the lab creates networks and mounts, so it needs root", "run the command with sudo"
        )


def check_machine(settings: Settings) -> None:
    """Check programs and permissions.

    Raises:
        LabError: something is missing; the message names all missing programs.
        A permission is missing, with which networks and namespaces are created.
    """
    needed = {**_PACKAGES, **(_ACCOUNTING_PACKAGES if settings.accounting else {})}
    _require(needed)
    # `lo up` needs the capability to change networks, `unshare` that to create namespaces.
    done = ask(("unshare", "--net", "--uts", "--mount", "ip", "link", "set", "lo", "up"))
    if done.returncode != 0:
        raise LabError(
            f"namespaces cannot be created here: {done.stderr.strip()}",
            "a container needs --privileged, or --cap-add SYS_ADMIN,NET_ADMIN,MKNOD",
        )


def check_twin_programs(*, accounting: bool) -> None:
    """Check the programs of a twin.

    Raises:
        LabError: something is missing; the message names all missing programs.
    """
    _require({**_TWIN_PACKAGES, **(_ACCOUNTING_PACKAGES if accounting else {})})


def _require(needed: Mapping[str, str]) -> None:
    """Check that programs are installed; each is given with its package.

    Raises:
        LabError: some are missing; the message names all of them.
    """
    absent = {program: package for program, package in needed.items() if not installed(program)}
    if absent:
        packages = " ".join(dict.fromkeys(absent.values()))
        raise LabError(f"not installed: {', '.join(absent)}", f"apt-get install {packages}")


def check_free(settings: Settings) -> None:
    """Check, after old labs are removed, that folder and networks are not in use.

    Raises:
        LabError: one of them is in use.
    """
    folder = Path(settings.folder)
    if os.path.lexists(folder) and not is_lab_folder(folder) and not _is_empty(folder):
        raise LabError(
            f"{folder} exists and is not the folder of a lab", "use another folder: --dir"
        )
    for line in must(("ip", "-4", "route", "show", "table", "all")).splitlines():
        if taken := overlap(line):
            raise LabError(
                f"the lab's network {taken} is in use here: {line.strip()}",
                "remove that route or interface; the addresses of the lab are fixed",
            )


def overlap(route: str) -> str:
    """Return the subnet that overlaps with a line of `ip route`, or an empty text."""
    words = [word for word in route.split() if word[0].isdigit()]
    if not words or route.startswith("default"):
        return ""
    try:
        network = ipaddress.ip_network(words[0], strict=False)
    except ValueError:
        return ""
    ours = (subnet for subnet in SUBNETS if network.overlaps(ipaddress.ip_network(subnet)))
    # A default route, or a VPN's /1 route, is no conflict: the lab's route is more specific.
    return next((subnet for subnet in ours if network.prefixlen >= 16), "")


def is_lab_folder(folder: Path) -> bool:
    """Whether a folder was created by `hpctrain lab up` and belongs to root."""
    conf = folder / "slurm.conf"
    if folder.is_symlink() or not conf.is_file() or folder.stat().st_uid != 0:
        return False
    return conf.read_text(encoding="utf-8", errors="replace").startswith(MARK)


def _is_empty(folder: Path) -> bool:
    return folder.is_dir() and not folder.is_symlink() and not any(folder.iterdir())
