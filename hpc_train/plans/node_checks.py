"""The checks of each node before the ranks start."""

from __future__ import annotations

import msgspec

from hpc_train.model.network import Network
from hpc_train.model.plan import Checks, JobVar, LaunchRequest, Setting, Token
from hpc_train.plans.context import Site
from hpc_train.plans.launchers.base import srun, texts

_CHECKS = JobVar(name="preflight")
_TIMEOUT_S = 30


def resolve_preflight(site: Site, request: LaunchRequest, network: Network) -> Checks | None:
    """Return the checks that a site's profile requests; None if there are none."""
    wanted = site.value.preflight
    if wanted is None:
        return None
    # A job on one node needs no network.
    several = request.topology.nodes > 1
    hcas = wanted.hcas or (network.hcas if several else ())
    return Checks(
        argv=_argv(request),
        gpus=request.topology.gpus_per_node if wanted.gpus else 0,
        # The programs in an image differ from those of the host.
        program=wanted.program and request.container is None,
        image=_image(request) if wanted.program else None,
        names=wanted.names,
        interfaces=wanted.interfaces or (network.interfaces if several else ()),
        hcas=tuple((name, port) for name, _, port in (hca.partition(":") for hca in hcas)),
        space=tuple((path, int(size)) for path, size in wanted.space.items()),
        memlock=wanted.memlock,
        clock_s=None if wanted.clock is None else int(wanted.clock),
        timeout_s=_TIMEOUT_S if wanted.timeout is None else int(wanted.timeout),
    )


def preflight_settings(site: Site) -> dict[str, Setting]:
    """Return the settings of the checks, with their origin."""
    if site.value.preflight is None:
        return {}
    why = "a bad node ends the job before the ranks start, and is on record for retry"
    return {"preflight": Setting(value="on", origin=site.near("preflight"), why=why)}


def _image(request: LaunchRequest) -> str | None:
    """Return the path of the image, if it is a file."""
    image = request.container.image if request.container else ""
    return image if image.startswith("/") else None


def _argv(request: LaunchRequest) -> tuple[Token, ...]:
    """One shell on each node, outside any image; its arguments are the program and rank 0's "
    "host."""
    bare = msgspec.structs.replace(request, container=None)
    starter = srun(bare, 1, "--cpu-bind=none") if request.scheduler == "slurm" else ()
    program = texts("preflight", request.command[0])
    return (*starter, *texts("bash", "-c"), _CHECKS, *program, JobVar(name="MASTER_ADDR"))
