"""A run -> its recorded conditions, which must match within a series."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from hpc_train.plans.plan import LaunchPlan
from hpc_train.runs.nccl_transport import Transport
from hpc_train.runs.run import Manifest, Run
from hpc_train.sites.batch_system import find_batch_system

# Variables that change data transfers between GPUs, or the library that does them.
FABRIC = re.compile(r"^(?:R?NCCL|UCX|FI|OFI|GLOO|TORCH_NCCL|TORCH_DIST|MPICH|OMPI_MCA)_")
# Options for sizes, which identify a point, and for the seed, by the words of their names.
_OF_SIZE = frozenset(
    """
    nodes node nnodes ranks nranks gpus ngpus devices world worldsize tasks ntasks nproc batch bs
    batchsize mbs gbs accum accumulate accumulation dp seed
    """.split()
)
_LETTERS = frozenset({"-b", "-g", "-n", "-N", "-np", "-nr"})
# Options that differ between runs, unless they name the work: `model.name`, `log.precision`.
_OF_RUN = frozenset(
    """
    output out log logs logdir save results checkpoint ckpt tensorboard run name wandb port job tag
    trial master addr host endpoint rdzv url timestamp
    """.split()
)
_OF_WORK = frozenset(
    """
    model data dataset optimizer optimiser optim scheduler task tokenizer arch network precision
    dtype loss activation activations gradient mode backend
    """.split()
)
_OPTION = re.compile(r"(?P<name>(?:-{0,2}|\+{1,2})[A-Za-z][\w.-]*)(?:=(?P<value>.*))?", re.DOTALL)
_LONGEST = 200
CHANGES = "+changes"
_DIRECTIVES = ("partition", "constraint", "exclusive")


def conditions_of(run: Run | None, transport: Transport | None) -> dict[str, str]:
    """Return the recorded conditions of a run by name: `torch`, `nccl`, `partition`, `commit` …

    A missing name means unknown. Values that depend on the number of nodes or ranks, or that an
    axis of the study sets, are not conditions.
    """
    manifest = run.manifest if run else None
    found = {
        **(dict(_requested(manifest)) if manifest else {}),
        **(dict(_used(transport)) if transport else {}),
    }
    return {name: cut(text) for name, text in found.items() if text}


def cut(text: str) -> str:
    """Return a text that fits a table; a longer one is truncated and gets a digest."""
    line = " ".join(text.split())
    if len(line) <= _LONGEST:
        return line
    return f"{line[: _LONGEST - 10]}… {hashlib.sha256(line.encode()).hexdigest()[:8]}"


def _requested(manifest: Manifest) -> Iterator[tuple[str, str]]:
    plan, directives = manifest.plan, dict(manifest.plan.directives)
    axes = frozenset(manifest.axes)
    values: dict[str, Callable[[], str]] = {
        "command": lambda: steady_command(manifest.spec.command, axes),
        "site": lambda: plan.site,
        "container": lambda: plan.container.image if plan.container else "none",
        # Uncommitted changes are unknown: they are shown as provenance, not compared.
        "commit": lambda: commit_of(manifest.provenance.get("git")).removesuffix(CHANGES),
        "template": lambda: manifest.template_digest[:12],
        "modules": lambda: " ".join(plan.modules) or "none",
        "setup": lambda: "; ".join(manifest.spec.setup) or "none",
        "variables": lambda: _variables(manifest, axes),
        "gpu_type": lambda: _setting(plan, "gpu_type"),
        "torch_asked": lambda: _setting(plan, "torch"),
        "torch": lambda: _torch(manifest),
    }
    for name, value in values.items():
        if name == "command" or not _set_by(axes, name):
            yield name, value()
    # A site has partitions of its own, and its scheduler may have no directive for them.
    for name in () if "site" in axes else _DIRECTIVES:
        if name in directives and not _set_by(axes, name):
            yield name, directives[name] or "yes"


def _used(transport: Transport) -> Iterator[tuple[str, str]]:
    yield "rccl" if transport.rccl else "nccl", " / ".join(transport.nccl_version)
    yield "plugin", " / ".join((*transport.plugins, transport.ofi_version)).strip(" /")


def steady_command(command: Sequence[str], axes: frozenset[str] = frozenset()) -> str:
    """Return a command without sizes, names of outputs, and items set by an axis (`command.3`)."""
    if "command" in axes:
        return ""
    words, skip = [], False
    for number, word in enumerate(command):
        option = _OPTION.fullmatch(word)
        free = f"command.{number}" in axes or skip
        skip = False
        if option and not free and _is_of_size(option["name"]):
            free = option["value"] is not None
            skip = word.startswith("-") and not free
            word = f"{option['name']}=…" if free else word
            words.append(word)
        else:
            words.append("…" if free else word)
    return " ".join(words)


def commit_of(git: Any) -> str:
    """Return `1a2b3c4d5e6f`, with `+changes` if the working tree was not clean."""
    if not isinstance(git, dict) or not git.get("commit"):
        return ""
    return str(git["commit"])[:12] + (CHANGES if git.get("dirty") else "")


def variables_of(plan: LaunchPlan) -> dict[str, str]:
    """Return the variables of a plan that change data transfers."""
    changed = {change.name: change.value or "" for change in plan.changes}
    return {name: str(text) for name, text in (*plan.env, *changed.items()) if FABRIC.match(name)}


def _variables(manifest: Manifest, axes: frozenset[str]) -> str:
    """Return the variables of the job itself: rules and a site's blocks may depend on its size."""
    own = {name: text for name, text in manifest.spec.env.items() if FABRIC.match(name)}
    named = [f"{name}={own[name]}" for name in sorted(own) if f"env.{name}" not in axes]
    return " ".join(named) or "none"


def _torch(manifest: Manifest) -> str:
    """Return the local version if the job runs on this machine; else only the job knows it."""
    if not find_batch_system(manifest.plan.scheduler).this_machine or manifest.plan.container:
        return ""
    packages = manifest.provenance.get("packages")
    return str(packages.get("torch", "")).partition("+")[0] if isinstance(packages, dict) else ""


def _setting(plan: LaunchPlan, name: str) -> str:
    setting = plan.settings.get(name)
    return "" if setting is None or setting.value is None else str(setting.value)


def _set_by(axes: frozenset[str], name: str) -> bool:
    return any(name in axis.split(".") for axis in axes)


def _is_of_size(name: str) -> bool:
    parts = frozenset(re.split(r"[._-]", name.lower().lstrip("+-")))
    if name in _LETTERS or parts & _OF_SIZE or parts >= {"data", "parallel"}:
        return True
    return bool(parts & _OF_RUN) and not parts & _OF_WORK
