"""Names -> code: launchers, log parsers, executors, batch systems and report formats,
built in and from plug-ins.

A built-in is a `module:attr` string, imported when it is used. A plug-in is an entry point of the
group `hpctrain.<group>`; plug-ins are searched for a name that is not built in, and for lists.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Literal

from hpc_train.base.errors import HpcTrainError, UnknownNameError

if TYPE_CHECKING:
    pass

PluginGroup = Literal["launchers", "parsers", "executors", "batch_systems", "formats"]

BUILT_IN: dict[PluginGroup, dict[str, str]] = {
    "launchers": {
        "torchrun": "hpc_train.plans.launchers.torchrun:LAUNCHER",
        "srun": "hpc_train.plans.launchers.srun:LAUNCHER",
        "mpirun": "hpc_train.plans.launchers.mpirun:LAUNCHER",
        "mpiexec": "hpc_train.plans.launchers.mpiexec:LAUNCHER",
        "ibrun": "hpc_train.plans.launchers.ibrun:LAUNCHER",
        "accelerate": "hpc_train.plans.launchers.accelerate:LAUNCHER",
        "deepspeed": "hpc_train.plans.launchers.deepspeed:LAUNCHER",
        "spawn": "hpc_train.plans.launchers.spawn:LAUNCHER",
        "single": "hpc_train.plans.launchers.single:LAUNCHER",
    },
    "parsers": {
        "events": "hpc_train.logs.formats.events:Events",
        "book": "hpc_train.logs.formats.formats:book",
        "all_reduce_bench": "hpc_train.logs.formats.nccl_benchmarks:AllReduceBench",
        "build_nanogpt": "hpc_train.logs.formats.formats:build_nanogpt",
        "composer": "hpc_train.logs.formats.formats:composer",
        "deepspeed": "hpc_train.logs.formats.megatron:DeepSpeed",
        "deepspeed_flops": "hpc_train.logs.formats.formats:deepspeed_flops",
        "detr_log": "hpc_train.logs.formats.formats:detr_log",
        "detectron": "hpc_train.logs.formats.vision:Detectron",
        "dllogger": "hpc_train.logs.formats.dllogger:DlLogger",
        "espnet": "hpc_train.logs.formats.formats:espnet",
        "fairseq": "hpc_train.logs.formats.language_models:Fairseq",
        "fms_fsdp": "hpc_train.logs.formats.formats:fms_fsdp",
        "hf_state": "hpc_train.logs.formats.hugging_face:HfState",
        "hf_trainer": "hpc_train.logs.formats.hugging_face:HfTrainer",
        "horovod_synthetic": "hpc_train.logs.formats.formats:horovod_synthetic",
        "hpl": "hpc_train.logs.formats.cluster_benchmarks:Hpl",
        "imagenet": "hpc_train.logs.formats.formats:imagenet",
        "imb": "hpc_train.logs.formats.cluster_benchmarks:Imb",
        "keras": "hpc_train.logs.formats.frameworks:Keras",
        "litgpt": "hpc_train.logs.formats.language_models:LitGpt",
        "llm_c": "hpc_train.logs.formats.formats:llm_c",
        "maxtext": "hpc_train.logs.formats.formats:maxtext",
        "megatron": "hpc_train.logs.formats.megatron:Megatron",
        "metrics_csv": "hpc_train.logs.formats.metric_tables:MetricsCsv",
        "mlperf": "hpc_train.logs.formats.mlperf:Mlperf",
        "mmengine": "hpc_train.logs.formats.openmmlab:MmEngine",
        "mmengine_json": "hpc_train.logs.formats.openmmlab:MmEngineJson",
        "modded_nanogpt": "hpc_train.logs.formats.language_models:ModdedNanoGpt",
        "mxnet_speedometer": "hpc_train.logs.formats.frameworks:MxnetSpeedometer",
        "nanogpt": "hpc_train.logs.formats.formats:nanogpt",
        "nanotron": "hpc_train.logs.formats.formats:nanotron",
        "nccl_json": "hpc_train.logs.formats.nccl_benchmarks:NcclJson",
        "nccl_tests": "hpc_train.logs.formats.nccl_benchmarks:NcclTests",
        "nemo_rl": "hpc_train.logs.formats.formats:nemo_rl",
        "nnunet": "hpc_train.logs.formats.formats:nnunet",
        "olmo": "hpc_train.logs.formats.formats:olmo",
        "open_clip": "hpc_train.logs.formats.vision:OpenClip",
        "osu": "hpc_train.logs.formats.cluster_benchmarks:Osu",
        "paddle": "hpc_train.logs.formats.frameworks:Paddle",
        "paddlenlp": "hpc_train.logs.formats.frameworks:PaddleNlp",
        "perftest": "hpc_train.logs.formats.cluster_benchmarks:Perftest",
        "tensorboard": "hpc_train.logs.formats.metric_tables:TensorBoard",
        "tf_timehistory": "hpc_train.logs.formats.frameworks:TfTimeHistory",
        "timm": "hpc_train.logs.formats.formats:timm",
        "torch_dist_bench": "hpc_train.logs.formats.nccl_benchmarks:TorchDistBench",
        "torchtitan": "hpc_train.logs.formats.language_models:Torchtitan",
        "torchtune": "hpc_train.logs.formats.formats:torchtune",
        "torchvision": "hpc_train.logs.formats.vision:TorchVision",
        "ultralytics": "hpc_train.logs.formats.vision:Ultralytics",
        "verl": "hpc_train.logs.formats.formats:verl",
        "wandb_chart": "hpc_train.logs.formats.metric_tables:WandbChart",
        # NeMo's progress bar extends Lightning's.
        "nemo": "hpc_train.logs.formats.progress_bars:Nemo",
        "lightning_bar": "hpc_train.logs.formats.progress_bars:LightningBar",
        # Formats of many training loops: after all formats that are more specific.
        "tutorials": "hpc_train.logs.formats.loops:Tutorials",
        "world_size": "hpc_train.logs.formats.loops:WorldSize",
        "tqdm": "hpc_train.logs.formats.progress_bars:TqdmBar",
        # Reads only logs in which no other parser found a measurement.
        "generic": "hpc_train.logs.formats.generic:Generic",
    },
    "executors": {
        "local": "hpc_train.hosts.local:LocalExecutor",
        "slurm": "hpc_train.slurm.executor:SlurmExecutor",
        "hosts": "hpc_train.hosts.executor:HostsExecutor",
        "pbs": "hpc_train.pbs.executor:PbsExecutor",
        "sagemaker": "hpc_train.sagemaker.executor:SageMakerExecutor",
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
        "text": "hpc_train.reports.formats.text:render",
        "markdown": "hpc_train.reports.formats.markdown:render",
        "csv": "hpc_train.reports.formats.csv_table:render",
        "json": "hpc_train.reports.formats.json_report:render",
        "latex": "hpc_train.reports.formats.latex:render",
        "tidy": "hpc_train.reports.formats.csv_table:render_tidy",
        "html": "hpc_train.reports.formats.page.render:render",
    },
}

# Errors that the import of a plug-in may raise; a broken plug-in must not stop a listing.
_BROKEN = (
    ImportError,
    AttributeError,
    SyntaxError,
    NameError,
    TypeError,
    ValueError,
    LookupError,
    OSError,
    RuntimeError,
    AssertionError,
    ArithmeticError,
)


class PluginError(HpcTrainError):
    """A plug-in cannot be loaded, or claims a name that is taken."""


def load(group: PluginGroup, name: str) -> object:
    """Return the object that `name` refers to.

    Raises:
        UnknownNameError: neither built in nor a plug-in.
        PluginError: the plug-in is broken, or two plug-ins claim the name.
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

    Raises:
        PluginError: two packages claim one name.
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
    """Return name -> target and package of the installed plug-ins."""
    # Costs 40 ms, which `--help` and the built-ins need not pay.
    from importlib.metadata import entry_points

    found: dict[str, tuple[str, str]] = {}
    for entry in entry_points(group=f"hpctrain.{group}"):
        package = entry.dist.name if entry.dist else "an unnamed package"
        plugin = (entry.value.partition("[")[0], package)
        if entry.name in BUILT_IN[group]:
            raise _duplicate(group, entry.name, "hpctrain", package)
        # The same package twice on sys.path (an editable install) is not a conflict.
        if found.setdefault(entry.name, plugin) != plugin:
            raise _duplicate(group, entry.name, found[entry.name][1], package)
    return found


def _duplicate(group: PluginGroup, name: str, first: str, second: str) -> PluginError:
    return PluginError(
        f"two packages provide the {group[:-1]} {name!r}: {first} and {second}",
        f"uninstall one of them, or rename its entry point in hpctrain.{group}",
    )


def _broken(group: PluginGroup, name: str, plugin: tuple[str, str], error: BaseException) -> str:
    reason = f"{type(error).__name__}: {error}"
    return f"the {group[:-1]} {name!r} of {plugin[1]} cannot be loaded: {reason}"
