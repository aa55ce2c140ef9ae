"""The result of the detection of this host's site, kept for ten minutes in the user's cache.

Detection may start `scontrol`, and reads all profiles; a command that only prints a script should
do neither. A kept result is used while every file, folder and variable that it was made from is as
it was. A cache that cannot be read or written costs time only.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from hpc_train.base.regularfile import read_regular
from hpc_train.base.value import Value
from hpc_train.sites.detected import CONF_FILES, PBS_FILES, Found
from hpc_train.sites.search import FAMILIES, search_path
from hpc_train.version import VERSION

if TYPE_CHECKING:
    from hpc_train.sites.detect import Detection, Host

_LIFE_S = 600.0
_LARGEST = 1 << 20
# They decide which cluster Slurm's commands ask, and which programs and profiles are found.
_VARIABLES = (
    "PATH", "HPCTRAIN_SITE_PATH", "SLURM_CONF", "SLURM_CLUSTERS", "SLURM_CLUSTER_NAME",
    "PBS_CONF_FILE", "SGE_ROOT", "LSF_ENVDIR",
)  # fmt: skip


class _Kept(Value, frozen=True, kw_only=True):
    made: float
    stamp: str
    found: Found


def found_here() -> Found:
    """Return what is known of this host, from the cache if that is valid."""
    kept = _read(cache_path())
    if kept is not None and _is_valid(kept):
        return kept.found
    return examine_here()[1]


def examine_here() -> tuple[Detection, Found]:
    """Examine this host anew, and keep the result."""
    from hpc_train.sites.detect import detect_site, this_host

    # A change while it is examined makes the kept result invalid.
    stamp = _stamp()
    host = this_host()
    detection = detect_site(host)
    found = _summary(host, detection)
    _write(cache_path(), _Kept(made=time.time(), stamp=stamp, found=found))
    return detection, found


def _is_valid(kept: _Kept) -> bool:
    recent = 0 <= time.time() - kept.made < _LIFE_S
    same = all(os.environ.get(name) == value for name, value in kept.found.env.items())
    return recent and same and kept.stamp == _stamp()


def _summary(host: Host, detection: Detection) -> Found:
    return Found(
        host=host.names[0],
        scheduler=host.scheduler,
        matches=detection.matches,
        env={name: host.env.get(name) for name in detection.variables},
    )


def cache_path() -> Path | None:
    """Return the file of this host: a home folder may be shared by several clusters."""
    try:
        folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    except RuntimeError:
        return None
    return folder / "hpctrain" / f"site-{_host()}.json"


def _host() -> str:
    return "".join(c if c.isalnum() or c in "-." else "_" for c in os.uname().nodename)[:128]


def _stamp() -> str:
    """Return a digest of everything that the result depends on, except variables of profiles."""
    facts = [VERSION, *(f"{name}={os.environ.get(name)}" for name in _VARIABLES)]
    given = os.environ.get("SLURM_CONF")
    files = (*CONF_FILES, *PBS_FILES, *([Path(given)] if given else []))
    facts += (_seen(path) for path in (*files, *_profiles()))
    return hashlib.sha256("\0".join(facts).encode(errors="surrogateescape")).hexdigest()


def _profiles() -> Iterator[Path]:
    """Yield the folder of the shipped profiles, and each profile of users and administrators."""
    *edited, shipped = search_path()
    yield shipped
    for folder in edited:
        yield from sorted((*folder.glob("*.yaml"), *folder.glob(f"{FAMILIES}/*.yaml")))


def _seen(path: Path) -> str:
    try:
        found = path.stat()
    except OSError:
        return f"{path}: none"
    return f"{path}: {found.st_mtime_ns} {found.st_size} {found.st_dev} {found.st_ino}"


def _read(path: Path | None) -> _Kept | None:
    if path is None:
        return None
    with suppress(OSError, msgspec.DecodeError, RecursionError):
        return msgspec.json.decode(read_regular(path, _LARGEST), type=_Kept)
    return None


def _write(path: Path | None, kept: _Kept) -> None:
    if path is None:
        return
    from hpc_train.base.atomicfile import write_atomic

    with suppress(OSError):
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_atomic(path, msgspec.json.encode(kept), flush=False)
