"""Names -> code: launchers, log parsers, executors, batch systems and report formats,
built in and from plug-ins.

A built-in is a `module:attr` string, imported when it is used. A plug-in is an entry point of the
group `hpctrain.<group>`; plug-ins are searched for a name that is not built in, and for lists.
"""

from __future__ import annotations

import importlib
import sys
from functools import cache
from typing import TYPE_CHECKING, Literal

from hpc_train.base.errors import HpcTrainError, UnknownNameError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoints

PluginGroup = Literal["launchers", "parsers", "executors", "batch_systems", "formats"]

BUILT_IN: dict[PluginGroup, dict[str, str]] = {
    "launchers": {
        "torchrun": "hpc_train.plans.launchers.agents:TORCHRUN",
        "srun": "hpc_train.plans.launchers.tasks:SRUN",
        "mpirun": "hpc_train.plans.launchers.mpi:MPIRUN",
        "mpiexec": "hpc_train.plans.launchers.mpi:MPIEXEC",
        "ibrun": "hpc_train.plans.launchers.mpi:IBRUN",
        "accelerate": "hpc_train.plans.launchers.agents:ACCELERATE",
        "deepspeed": "hpc_train.plans.launchers.tasks:DEEPSPEED",
        "spawn": "hpc_train.plans.launchers.tasks:SPAWN",
        "single": "hpc_train.plans.launchers.tasks:SINGLE",
    },
    # In the order in which they are tried on a line: NeMo's progress bar extends Lightning's; those
    # of many training loops come after all that are more specific.
    "parsers": {
        name: f"hpc_train.logs.formats.formats:{name}"
        for name in (
            "events book all_reduce_bench build_nanogpt composer deepspeed "
            "detr_log detectron dllogger espnet fairseq fms_fsdp hf_state hf_trainer "
            "horovod_synthetic imagenet imb litgpt megatron metrics_csv "
            "mlperf mmengine mmengine_json modded_nanogpt mxnet_speedometer nanogpt nanotron "
            "nccl_tests nemo_rl nnunet olmo open_clip osu perftest "
            "tensorboard tf_timehistory timm torch_dist_bench torchtitan torchtune torchvision "
            "ultralytics verl nemo lightning_bar tutorials world_size tqdm generic "
        ).split()
    },
    "executors": {
        "local": "hpc_train.hosts.local:LocalExecutor",
        "slurm": "hpc_train.slurm.executor:SlurmExecutor",
        "hosts": "hpc_train.hosts.executor:HostsExecutor",
        "pbs": "hpc_train.pbs.executor:PbsExecutor",
        "sagemaker": "hpc_train.sagemaker.submit_jobs:SageMakerExecutor",
    },
    # Executors by what they give inside a job; separate, because a script needs no executor.
    "batch_systems": {
        "local": "hpc_train.sites.batch_system:LOCAL",
        "slurm": "hpc_train.sites.batch_system:SLURM",
        "hosts": "hpc_train.sites.batch_system:HOSTS",
        "pbs": "hpc_train.sites.batch_system:PBS",
        "sagemaker": "hpc_train.sites.batch_system:SAGEMAKER",
    },
    "formats": {
        "text": "hpc_train.reports.text:render",
        "markdown": "hpc_train.reports.markdown:render",
        "csv": "hpc_train.reports.csv_table:render",
        "json": "hpc_train.reports.json_report:render",
        "latex": "hpc_train.reports.latex:render",
        "tidy": "hpc_train.reports.csv_table:render_tidy",
        "html": "hpc_train.reports.page.render:render",
    },
}

# A broken plug-in, which may raise anything, must not stop a listing.
_BROKEN = Exception


class PluginError(HpcTrainError):
    """A plug-in cannot be loaded."""


def load(group: PluginGroup, name: str) -> object:
    """Return the object that `name` refers to.

    Raises:
        UnknownNameError: neither built in nor a plug-in.
        PluginError: the plug-in is broken.
    """
    target = BUILT_IN[group].get(name)
    if target is not None:
        return resolve(target)
    plugins = _plugins(group)
    if name not in plugins:
        raise UnknownNameError(group[:-1], name, [*BUILT_IN[group], *plugins])
    try:
        return resolve(plugins[name][0])
    except _BROKEN as error:
        raise PluginError(_broken(group, name, plugins[name], error)) from error


def names(group: PluginGroup) -> tuple[str, ...]:
    """Return the names that can be loaded: built-ins first, then plug-ins, each in order.

    A broken plug-in is left out, with a warning in the log.
    """
    # Costs 4 ms, which a built-in that is just loaded need not pay.
    import logging

    working = []
    for name, plugin in sorted(_plugins(group).items()):
        try:
            resolve(plugin[0])
        except _BROKEN as error:
            logging.getLogger(__name__).warning(_broken(group, name, plugin, error))
        else:
            working.append(name)
    return (*BUILT_IN[group], *working)


def resolve(target: str) -> object:
    """Return the object of a `module:attr` string."""
    module, _, attribute = target.partition(":")
    found: object = importlib.import_module(module.strip())
    for part in attribute.strip().split("."):
        found = getattr(found, part)
    return found


def _plugins(group: PluginGroup) -> dict[str, tuple[str, str]]:
    """Return name -> target and package of the plug-ins; of one name, those first on sys.path."""
    found: dict[str, tuple[str, str]] = {}
    for entry in _entry_points(f"hpctrain.{group}", *sys.path):
        package = entry.dist.name if entry.dist else "an unnamed package"
        plugin = (entry.value.partition("[")[0], package)
        if entry.name not in BUILT_IN[group]:
            found.setdefault(entry.name, plugin)
    return found


@cache
def _entry_points(group: str, *_: str) -> EntryPoints:
    """Return those of a group of the packages that are installed in `sys.path`."""
    # Costs 40 ms, which `--help` and the built-ins need not pay.
    from importlib.metadata import entry_points

    return entry_points(group=group)


def _broken(group: PluginGroup, name: str, plugin: tuple[str, str], error: BaseException) -> str:
    reason = f"{type(error).__name__}: {error}"
    return f"the {group[:-1]} {name!r} of {plugin[1]} cannot be loaded: {reason}"
