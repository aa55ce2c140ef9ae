"""Executor `pbs`: scripts -> qsub."""

from __future__ import annotations

from hpc_train.errors import SiteProfileError
from hpc_train.model.site import SourcedSite
from hpc_train.submissions.base import Executor


class PbsExecutor(Executor):
    """Submits scripts with qsub."""

    def refuse(self, site: SourcedSite) -> None:
        """Refuse every submission; see `Executor.refuse`."""
        raise SiteProfileError(
            f"{site.value.name}: hpctrain writes scripts of PBS and does not submit them",
            "hpctrain render FILE -o job.sh; qsub job.sh",
        )
