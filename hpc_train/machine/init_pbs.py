"""A live PBS -> draft of a site profile that loads and renders a job."""

from __future__ import annotations

import datetime
import os
import re
import shutil

from hpc_train.base.errors import ProbeError
from hpc_train.machine.draft_pbs import draft_pbs
from hpc_train.machine.init_site import Drafted, InitOptions, check_draft, target_of, write_draft
from hpc_train.pbs.live_pbs import LivePbs
from hpc_train.pbs.query_pbs import read_pbs, starters
from hpc_train.sites.detection import conf_file


def is_pbs() -> bool:
    """Return whether this machine has the commands of PBS, and no Slurm that is configured.

    On a cluster with Slurm, qstat may be a wrapper for users who come from PBS.
    """
    if shutil.which("qstat") is None:
        return False
    slurm = conf_file(os.environ) is not None or "SLURM_CLUSTER_NAME" in os.environ
    return not slurm or shutil.which("scontrol") is None


def init_pbs(options: InitOptions) -> Drafted:
    """Query the server, and write the draft atomically.

    Raises:
        HpcTrainError: no answer, an existing file, or one that cannot be written.
    """
    given = options.name or (options.output.stem if options.output else None)
    if given is not None:
        # Errors in the options are reported before PBS is queried.
        target_of(options, given)
    pbs = read_pbs()
    _check_queues(pbs)
    name = given or re.sub(r"[^a-z0-9._-]+", "-", pbs.name.partition(".")[0].lower())
    target = target_of(options, name)
    text = draft_pbs(name, datetime.date.today().isoformat(), pbs, starters())
    check_draft(name, text, f"the answers of the PBS server {pbs.name}")
    write_draft(target, text, options)
    return Drafted(path=target, name=name, text=text, unread=pbs.unread)


def _check_queues(pbs: LivePbs) -> None:
    """Refuse a server without a queue that takes jobs: a profile has at least one.

    Raises:
        ProbeError: with the queues that are closed.
    """
    if pbs.shown:
        return
    closed = ", ".join(queue.name for queue in pbs.queues)
    message = f"the PBS server {pbs.name} has no open queue to which users submit"
    raise ProbeError(
        f"{message}; closed or fed by routes only: {closed}" if closed else message,
        "qstat -Q shows when one is open, then run site init again",
    )
