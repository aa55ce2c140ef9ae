"""Runs of two sides -> the settings in which they differ."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from hpc_train.base.variable_names_and_secrets import looks_secret, secret_form, secret_set
from hpc_train.runs.run import Manifest, Run
from hpc_train.sites.batch_system import find_batch_system

_LONGEST = 60
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
    settings = [_settings(a), _settings(b)] if a and b else [{}, {}]
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
    return tuple(sorted(differing, key=lambda row: _order(row[0])))


def _order(name: str) -> tuple[int, int, str]:
    kinds = ("env.", "sbatch ", "qsub ", "packages.")
    kind = next((i for i, kind in enumerate(kinds, 1) if name.startswith(kind)), 0)
    return kind, OF_SITES.index(name) if name in OF_SITES else len(OF_SITES), name


def _settings(runs: Sequence[Run]) -> dict[str, list[str]]:
    return _collected(pair for run in runs if run.manifest for pair in _of_manifest(run.manifest))


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
    values |= {f"env.{c.name}": c.value or "(unset)" for c in plan.changes}
    command = find_batch_system(plan.scheduler).submit
    values |= {f"{command} {n}": v or "(set)" for n, v in plan.directives if n not in _OF_SIZE}
    values |= {"modules": plan.modules, "modules_use": plan.modules_use, "setup": plan.setup}
    facts = manifest.provenance
    values |= {name: facts.get(name) for name in _MACHINE}
    values |= {f"packages.{n}": v for n, v in (facts.get("packages") or {}).items()}
    values |= {f"code {name}": value for name, value in (facts.get("git") or {}).items()}
    for name, value in values.items():
        if name not in _SIZES and value not in (None, "", (), []):
            yield name, _text(value)


def _text(value: Any) -> str:
    if isinstance(value, (list, tuple)):
        return " ".join(map(str, value))
    return str(value).lower() if isinstance(value, bool) else str(value)


def _shown(name: str, values: Sequence[str]) -> str:
    variable = name.removeprefix("env.")
    if any(looks_secret(variable, v) or secret_form(v) or secret_set(v) for v in values):
        return HIDDEN
    shown = [v if len(v) <= _LONGEST else f"{v[: _LONGEST - 1]}…" for v in values[:_SHOWN]]
    return " / ".join(shown) + (" / …" if len(values) > _SHOWN else "") or "--"
