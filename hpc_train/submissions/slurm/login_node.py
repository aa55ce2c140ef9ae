"""Whether this host can submit to Slurm."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from hpc_train.errors import SiteProfileError
from hpc_train.model.site import SourcedSite


def check_login_node(site: SourcedSite) -> None:
    """Check for sbatch and for its slurm.conf.

    Raises:
        SiteProfileError: one of them does not exist.
    """
    name = site.value.name
    if not shutil.which("sbatch"):
        raise SiteProfileError(
            f"{name}: sbatch is not on PATH, so this is not a login node of a Slurm cluster",
            "on Debian: apt-get install slurm-client; without Slurm: --site local",
        )
    given = os.environ.get("SLURM_CONF")
    if given is not None and not Path(given).is_file():
        raise SiteProfileError(f"SLURM_CONF={given}: there is no such file", "unset SLURM_CONF")
    conf = site.value.slurm_conf
    if given is None and conf is not None and not Path(conf).is_file():
        hint = "hpctrain lab up" if name == "lab" else "ask the site, or set SLURM_CONF"
        raise SiteProfileError(f"{site.origin('slurm_conf')}: {conf} does not exist", hint)
