"""`df -PTlk` -> the local file systems of a node that a job may use."""

from __future__ import annotations

from hpc_train.model.hardware import Disk
from hpc_train.probe.run_program import whole

_KINDS = ("ext2", "ext3", "ext4", "xfs", "btrfs", "zfs", "f2fs")
_SYSTEM = (
    "/boot",
    "/efi",
    "/etc",
    "/home",
    "/nix",
    "/opt",
    "/proc",
    "/root",
    "/run",
    "/snap",
    "/srv",
    "/sys",
    "/usr",
    "/var/lib",
    "/var/log",
    "/var/spool",
    "/var/cache",
)


def disks(text: str) -> tuple[Disk, ...]:
    """Return the mounted disks, without those of the operating system."""
    return tuple(
        disk
        for disk in file_systems(text)
        if disk.kind in _KINDS and disk.path not in ("/", "/var") and not _is_system(disk.path)
    )


def file_systems(text: str) -> tuple[Disk, ...]:
    """Read all lines: device, type, sizes in KiB, percentage used, mount point."""
    rows = (line.split(None, 6) for line in text.splitlines())
    return tuple(
        Disk(path=row[6], kind=row[1], size_mib=size // 1024, free_mib=free // 1024)
        for row in rows
        if len(row) == 7 and row[6].startswith("/")
        if (size := whole(row[2])) is not None and (free := whole(row[4])) is not None
    )


def _is_system(path: str) -> bool:
    return path.startswith(tuple(f"{folder}/" for folder in _SYSTEM)) or path in _SYSTEM
