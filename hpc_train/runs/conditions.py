"""The conditions of a run: provenance, what must match within a series, the transport of NCCL."""

from __future__ import annotations

import hashlib
import platform
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from hpc_train import __version__
from hpc_train.base.processes import run
from hpc_train.base.values import Finding, Severity, Value, encode_unit
from hpc_train.base.variable_names_and_secrets import looks_secret, secret_form, secret_set
from hpc_train.plans.plan import LaunchPlan
from hpc_train.runs.nodes import recorded_nodes
from hpc_train.runs.run import PROFILE, PROFILE_DIGEST, Manifest, Run
from hpc_train.sites.batch_system import find_batch_system

_PACKAGES = ("torch", "numpy", "submitit")


def provenance(folder: Path, argv: Sequence[str]) -> dict[str, Any]:
    """Describe this machine, the installed packages and the git state of `folder`."""
    return {
        "hpctrain": __version__,
        "python": platform.python_version(),
        "host": platform.node(),
        "kernel": platform.release(),
        "cpu": _cpu_model(),
        "cwd": str(folder.absolute()),
        "argv": list(argv),
        "packages": _versions(),
        "git": _git(folder),
    }


def _versions() -> dict[str, str]:
    # Costs 40 ms, which a report of runs need not pay.
    from importlib.metadata import PackageNotFoundError, version

    found = {}
    for name in _PACKAGES:
        with suppress(PackageNotFoundError):
            found[name] = version(name)
    return found


def _git(folder: Path) -> dict[str, Any] | None:
    commit = run(["git", "rev-parse", "HEAD"], 10, folder)
    if commit.returncode != 0:
        return None
    # The results of the first submission are untracked files, and would mark the second as changed.
    changes = run(["git", "status", "--porcelain", "--untracked-files=no"], 30, folder)
    return {"commit": commit.stdout.strip(), "dirty": bool(changes.stdout.strip())}


def _cpu_model() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.machine()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


DIGITS = 12
_SHOWN_OPTIONS = ("partition", "qos", "account", "constraint", "exclusive", "reservation")


def run_facts(run: Run | None, transport: Transport | None) -> dict[str, str]:
    """Return the facts; a name without a value is unknown."""
    found = _planned(run.manifest) if run and run.manifest else {}
    if run is not None:
        found["nodes"] = recorded_nodes(run)
    if transport is not None:
        adapters = (f"{a.name} {a.link_layer}".strip() for a in transport.adapters)
        found |= {n: text for n, text in sorted(transport.environment.items()) if FABRIC.match(n)}
        found |= {
            "transport": transport.verdict,
            "adapters": ", ".join(adapters),
            "interfaces": ", ".join(transport.interfaces),
            "provider": transport.provider,
        }
    return {name: cut(text) for name, text in found.items() if text}


def _planned(manifest: Manifest) -> dict[str, str]:
    plan, facts = manifest.plan, manifest.provenance
    changed = {change.name: change.value for change in plan.changes}
    directives, digest = dict(plan.directives), str(facts.get(PROFILE_DIGEST, ""))
    directive_values = {
        name: directives[name] or "yes" for name in _SHOWN_OPTIONS if name in directives
    }
    spec = msgspec.to_builtins(manifest.spec, enc_hook=encode_unit)
    # A key that a later version adds does not change the digest of jobs without it.
    if spec["resources"]["gpu_type"] is None:
        del spec["resources"]["gpu_type"]
    stated = msgspec.json.encode({key: value for key, value in spec.items() if value is not None})
    return {
        "site": plan.site,
        "profile": f"{Path(str(facts.get(PROFILE, ''))).name} {digest[:DIGITS]}".strip(),
        **directive_values,
        "launcher": plan.launcher,
        "backend": plan.backend,
        "container": plan.container.image if plan.container else "none",
        "modules": " ".join(plan.modules) or "none",
        "commit": commit_of(facts.get("git")),
        "config": hashlib.sha256(stated).hexdigest()[:DIGITS],
        "template": f"{plan.template} {manifest.template_digest[:DIGITS]}",
        "script": manifest.script_digest[:DIGITS],
        "submitted with": f"hpctrain {facts['hpctrain']}" if "hpctrain" in facts else "",
        "submitted from": " ".join(str(facts[k]) for k in ("host", "kernel") if facts.get(k)),
        # The variables that change data transfers.
        **{n: str(text) for n, text in (*plan.env, *changed.items()) if FABRIC.match(n)},
    }


# Variables that change data transfers between GPUs, or the library that does them.
FABRIC = re.compile(r"^(?:R?NCCL|UCX|FI|OFI|GLOO|TORCH_NCCL|TORCH_DIST|MPICH|OMPI_MCA)_")
# Options for sizes, which identify a point, and for the seed, by the words of their names.
_SIZE_WORDS = frozenset(
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
_LONGEST_LINE = 200
CHANGES = "+changes"
_DIRECTIVES = ("partition", "constraint", "exclusive")


def conditions_of(run: Run | None, transport: Transport | None) -> dict[str, str]:
    """Return the recorded conditions of a run by name: `torch`, `nccl`, `partition`, `commit` …

    A missing name means unknown. Values that depend on the number of nodes or ranks, or that an
    axis of the study sets, are not conditions.
    """
    manifest = run.manifest if run else None
    found = dict(_requested(manifest)) if manifest else {}
    if transport is not None:
        found["rccl" if transport.rccl else "nccl"] = " / ".join(transport.nccl_version)
        parts = (*transport.plugins, transport.ofi_version)
        found["plugin"] = " / ".join(parts).strip(" /")
    return {name: cut(text) for name, text in found.items() if text}


def cut(text: str) -> str:
    """Return a text that fits a table; a longer one is truncated and gets a digest."""
    line = " ".join(text.split())
    if len(line) <= _LONGEST_LINE:
        return line
    return f"{line[: _LONGEST_LINE - 10]}… {hashlib.sha256(line.encode()).hexdigest()[:8]}"


def _requested(manifest: Manifest) -> Iterator[tuple[str, str]]:
    plan, directives = manifest.plan, dict(manifest.plan.directives)
    axes = frozenset(manifest.axes)
    # Of the job itself: rules and a site's blocks may depend on its size.
    own = sorted((n, v) for n, v in manifest.spec.env.items() if f"env.{n}" not in axes)
    values = {
        "command": steady_command(manifest.spec.command, axes),
        "site": plan.site,
        "container": plan.container.image if plan.container else "none",
        # Uncommitted changes are unknown: they are shown as provenance, not compared.
        "commit": commit_of(manifest.provenance.get("git")).removesuffix(CHANGES),
        "template": manifest.template_digest[:DIGITS],
        "modules": " ".join(plan.modules) or "none",
        "setup": "; ".join(manifest.spec.setup) or "none",
        "variables": " ".join(f"{n}={v}" for n, v in own if FABRIC.match(n)) or "none",
        "gpu_type": _setting(plan, "gpu_type"),
        "torch_asked": _setting(plan, "torch"),
        "torch": _torch(manifest),
    }
    for name, value in values.items():
        if name == "command" or not _set_by(axes, name):
            yield name, value
    # A site has partitions of its own, and its scheduler may have no directive for them.
    for name in () if "site" in axes else _DIRECTIVES:
        if name in directives and not _set_by(axes, name):
            yield name, directives[name] or "yes"


def steady_command(command: Sequence[str], axes: frozenset[str] = frozenset()) -> str:
    """Return a command without sizes, names of outputs, and items set by an axis (`command.3`)."""
    if "command" in axes:
        return ""
    words, skip = [], False
    for number, word in enumerate(command):
        option = _OPTION.fullmatch(word)
        free = f"command.{number}" in axes or skip
        skip = False
        parts = frozenset(re.split(r"[._-]", option["name"].lower().lstrip("+-"))) if option else ()
        of_size = option and (
            option["name"] in _LETTERS
            or _SIZE_WORDS.intersection(parts)
            or {"data", "parallel"}.issubset(parts)
            or (_OF_RUN.intersection(parts) and not _OF_WORK.intersection(parts))
        )
        if option and not free and of_size:
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


_LONGEST_VALUE = 60
_SHOWN = 3
HIDDEN = "(not shown)"
# Keys by which points are matched, and names of runs.
_SIZES = frozenset({"name", "nodes", "tasks_per_node", "gpus_per_node", "ranks"})
_OF_SIZE = frozenset(
    {"nodes", "ntasks", "ntasks-per-node", "gpus-per-node", "gpus", "gres", "gpus-per-task"}
    | {"job-name", "output", "error", "comment", "chdir"}
)
_MACHINE = ("hpctrain", "python", "host", "kernel", "cpu")

# What a site gives to a job: a comparison begins with them.
OF_SITES = (
    *("site", "scheduler", "transport", "adapters", "plugin", "nccl", "rccl", "mpi"),
    *("gpu", "gpu_type", "device", "driver", "cuda", "rocm", "torch"),
)

SettingDifference = tuple[str, str, str]


def differences(
    a: Sequence[Run], b: Sequence[Run], conditions: Sequence[Sequence[Mapping[str, str]]]
) -> tuple[SettingDifference, ...]:
    """Return name, values in A, values in B, of each setting that differs.

    Values are those of all runs of a side. `conditions` are recorded values of runs apart from
    their manifests; a condition that only one side records is not a difference. Sites, fabric, GPUs
    and versions come first. Long values are shortened; what looks like a secret is never shown.
    """
    settings = [
        _collected(pair for run in side if run.manifest for pair in _of_manifest(run.manifest))
        for side in ((a, b) if a and b else ((), ()))
    ]
    recorded = [_collected(pair for own in side for pair in own.items()) for side in conditions]
    rows = {}
    for name in dict.fromkeys([*recorded[0], *recorded[1]]):
        if name in recorded[0] and name in recorded[1]:
            rows[name] = [side[name] for side in recorded]
    for name in dict.fromkeys([*settings[0], *settings[1]]):
        rows[name] = [side.get(name, []) for side in settings]
    differing = [
        (name, _shown(name, first), _shown(name, second))
        for name, (first, second) in rows.items()
        if sorted(first) != sorted(second)
    ]
    kinds = ("env.", "sbatch ", "qsub ", "packages.")

    def order(row: SettingDifference) -> tuple[int, int, str]:
        kind = next((i for i, kind in enumerate(kinds, 1) if row[0].startswith(kind)), 0)
        return kind, OF_SITES.index(row[0]) if row[0] in OF_SITES else len(OF_SITES), row[0]

    return tuple(sorted(differing, key=order))


def _collected(pairs: Iterable[tuple[str, str]]) -> dict[str, list[str]]:
    found: dict[str, dict[str, None]] = defaultdict(dict)
    for name, value in pairs:
        found[name][str(value)] = None
    return {name: list(values) for name, values in found.items()}


def _of_manifest(manifest: Manifest) -> Iterator[tuple[str, str]]:
    plan = manifest.plan
    values: dict[str, Any] = {
        key.removeprefix("resources."): value for key, value in manifest.axes.items()
    }
    values |= {name: setting.value for name, setting in plan.settings.items()}
    values |= {"site": plan.site, "scheduler": plan.scheduler, "launcher": plan.launcher}
    values |= {f"env.{name}": str(value) for name, value in plan.env}
    values |= {f"env.{c.name}": c.value for c in plan.changes}
    command = find_batch_system(plan.scheduler).submit
    values |= {f"{command} {n}": v or "(set)" for n, v in plan.directives if n not in _OF_SIZE}
    values |= {"modules": plan.modules, "modules_use": plan.modules_use, "setup": plan.setup}
    facts = manifest.provenance
    values |= {name: facts.get(name) for name in _MACHINE}
    values |= {f"packages.{n}": v for n, v in (facts.get("packages") or {}).items()}
    values |= {f"code {name}": value for name, value in (facts.get("git") or {}).items()}
    for name, value in values.items():
        if name not in _SIZES and value not in (None, "", (), []):
            text = str(value).lower() if isinstance(value, bool) else str(value)
            yield name, " ".join(map(str, value)) if isinstance(value, (list, tuple)) else text


def _shown(name: str, values: Sequence[str]) -> str:
    variable = name.removeprefix("env.")
    if any(looks_secret(variable, v) or secret_form(v) or secret_set(v) for v in values):
        return HIDDEN
    shown = [
        v if len(v) <= _LONGEST_VALUE else f"{v[: _LONGEST_VALUE - 1]}…" for v in values[:_SHOWN]
    ]
    return " / ".join(shown) + (" / …" if len(values) > _SHOWN else "") or "--"


class Adapter(Value, frozen=True, kw_only=True, forbid_unknown_fields=False):
    """A host adapter that NCCL listed: `mlx5_0:1`, its link layer (`IB`, `RoCE`)."""

    name: str
    link_layer: str


class TransportFinding(Finding, frozen=True, kw_only=True):
    """A slow transport, or one not as in the site profile; `evidence` are places, `file:line`."""

    severity: Severity
    evidence: tuple[str, ...] = ()


class Transport(Value, frozen=True, kw_only=True, forbid_unknown_fields=False):
    """Summary of the NCCL, RCCL and plug-in lines of a run's logs.

    `channels` counts channels by kind (`NET/IB/GDRDMA`, `P2P/CUMEM`, `SHM`), `between_nodes` those
    whose ends are on different nodes. `using_network` counts the ranks that chose each network,
    used or not. `nodes` and `ranks` are those of the largest communicator; None if no line states
    them. `verdict` is short: `IB+GDR`, `sockets`, `NVLink`; it is empty if no line states the
    transport. `nvlink`: a line says that GPUs of a node reach one another by NVLink, with `rccl` by
    xGMI. `first` gives the first line of each kind of fact. Files of earlier versions have further
    fields, which are ignored.
    """

    verdict: str = ""
    findings: tuple[TransportFinding, ...] = ()
    nccl_version: tuple[str, ...] = ()
    ranks: int | None = None
    nodes: int | None = None
    hosts: tuple[str, ...] = ()
    using_network: dict[str, int] = {}
    channels: dict[str, int] = {}
    between_nodes: dict[str, int] = {}
    nvlink: bool = False
    rccl: bool = False
    adapters: tuple[Adapter, ...] = ()
    interfaces: tuple[str, ...] = ()
    plugins: tuple[str, ...] = ()
    plugin_missing: bool = False
    ofi_version: str = ""
    provider: str = ""
    without_gdr: tuple[str, ...] = ()
    gdr_only_received: bool = False
    environment: dict[str, str] = {}
    first: dict[str, str] = {}

    def places(self, *kinds: str) -> tuple[str, ...]:
        """Return the first line of each of these kinds of fact, if there is one."""
        return tuple(self.first[kind] for kind in kinds if kind in self.first)
