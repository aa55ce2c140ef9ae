"""What a job runs before its ranks: modules, shell lines, and checks of its nodes."""

from __future__ import annotations

import shlex

import msgspec

from hpc_train.model.launchers_and_preflight import PluginCheck
from hpc_train.model.plan import Checks, JobVar, LaunchRequest, Setting, Token
from hpc_train.model.site import SourcedSite
from hpc_train.model.site_network import Network
from hpc_train.plans.containers.resolve import container_setup
from hpc_train.plans.context import Context
from hpc_train.plans.launchers.base import each_node, texts


def setup_settings(context: Context, script: str | None) -> dict[str, Setting]:
    """Return `modules_purge`, `modules_use.0`, …, `modules.0`, … and `setup.0`, … in their order.

    The vendor's script follows the site's lines, which load its modules.
    """
    job, site = context.job, context.site
    why = "the vendor's own settings; they need not be repeated"
    modules = [
        *((name, context.near(f"modules.{i}")) for i, name in enumerate(context.partition.modules)),
        *((name, site.origin(f"modules.{i}")) for i, name in enumerate(site.value.modules)),
    ]
    modules += [(name, job.origin(f"modules.{i}")) for i, name in enumerate(job.value.modules)]
    lines = [(line, site.origin(f"setup.{i}")) for i, line in enumerate(site.value.setup)]
    sourced = site.near("network.script") if script is not None else None
    if script is not None and sourced is not None:
        lines.append((f"source {shlex.quote(script)}", sourced))
    lines += container_setup(job, site)
    lines += [(line, job.origin(f"setup.{i}")) for i, line in enumerate(job.value.setup)]
    folders = [
        (folder, site.origin(f"modules_use.{i}")) for i, folder in enumerate(site.value.modules_use)
    ]
    return _purge(site) | {
        f"{key}.{i}": Setting(value=value, origin=origin, why=why * (origin == sourced))
        for key, found in (("modules_use", folders), ("modules", modules), ("setup", lines))
        for i, (value, origin) in enumerate(found)
    }


def _purge(site: SourcedSite) -> dict[str, Setting]:
    if not site.value.modules_purge:
        return {}
    why = "the job must not depend on what the submitting shell has loaded"
    return {"modules_purge": Setting(value=True, origin=site.origin("modules_purge"), why=why)}


def values_of(key: str, settings: dict[str, Setting]) -> tuple[str, ...]:
    """Return the values of `modules_use.0`, … `modules.0`, … or `setup.0`, … in their order."""
    return tuple(s.value for name, s in settings.items() if name.partition(".")[0] == key)


_CHECKS = JobVar(name="preflight")
_PLUGIN = JobVar(name="plugin_check")
_TIMEOUT_S = 30


def resolve_preflight(site: SourcedSite, request: LaunchRequest, network: Network) -> Checks | None:
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


def plugin_argv(request: LaunchRequest, plugin: PluginCheck | None) -> tuple[Token, ...]:
    """Return the command that looks for the library of a plug-in on each node."""
    return _on_each_node(request, _PLUGIN) if plugin else ()


def preflight_settings(site: SourcedSite) -> dict[str, Setting]:
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
    program = texts("preflight", request.command[0])
    return (*_on_each_node(request, _CHECKS), *program, JobVar(name="MASTER_ADDR"))


def _on_each_node(request: LaunchRequest, checks: JobVar) -> tuple[Token, ...]:
    bare = msgspec.structs.replace(request, container=None)
    return (*each_node(bare), *texts("bash", "-c"), checks)
