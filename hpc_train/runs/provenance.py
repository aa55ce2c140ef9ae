"""Provenance of a run: recorded when it is submitted, and as facts by name for a report."""

from __future__ import annotations

import hashlib
import platform
import re
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from hpc_train.base.processes import run
from hpc_train.base.value import encode_unit
from hpc_train.runs.nccl_transport import Transport
from hpc_train.runs.node_list import recorded_nodes
from hpc_train.runs.run import PROFILE, PROFILE_DIGEST, Manifest, Run
from hpc_train.runs.run_conditions import FABRIC, commit_of, cut, variables_of
from hpc_train.version import VERSION

_PACKAGES = ("torch", "numpy", "submitit")
_METADATA = re.compile(
    rf"(?P<name>{'|'.join(_PACKAGES)})-(?P<version>[^-]{{1,64}})(?:-py3[.0-9]*)?\.(?:dist|egg)-info$",
    re.IGNORECASE,
)


def provenance(folder: Path, argv: Sequence[str]) -> dict[str, Any]:
    """Describe this machine, the installed packages and the git state of `folder`."""
    return {
        "hpctrain": VERSION,
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
    """Return the versions of packages, by the names of their folders of metadata (PEP 376, 427).

    `importlib.metadata` would read as many files for its own modules as the rest of a submission.
    """
    found: dict[str, str] = {}
    for folder in filter(None, sys.path):
        # An archive, or a folder that is not there or may not be read.
        with suppress(OSError):
            names = (path.name for path in Path(folder).iterdir())
            for match in filter(None, map(_METADATA.match, names)):
                found.setdefault(match["name"].lower(), match["version"])
    return {name: found[name] for name in _PACKAGES if name in found}


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
_DIRECTIVES = ("partition", "qos", "account", "constraint", "exclusive", "reservation")


def run_facts(run: Run | None, transport: Transport | None) -> dict[str, str]:
    """Return the facts; a name without a value is unknown."""
    found = _planned(run.manifest) if run and run.manifest else {}
    if run is not None:
        found["nodes"] = recorded_nodes(run)
    if transport is not None:
        found |= _of_transport(transport)
    return {name: cut(text) for name, text in found.items() if text}


def _planned(manifest: Manifest) -> dict[str, str]:
    plan, facts = manifest.plan, manifest.provenance
    directives = dict(plan.directives)
    directive_values = {
        name: directives[name] or "yes" for name in _DIRECTIVES if name in directives
    }
    spec = msgspec.to_builtins(manifest.spec, enc_hook=encode_unit)
    # A key that a later version adds does not change the digest of jobs without it.
    if spec["resources"]["gpu_type"] is None:
        del spec["resources"]["gpu_type"]
    stated = msgspec.json.encode({key: value for key, value in spec.items() if value is not None})
    return {
        "site": plan.site,
        "profile": _profile(facts),
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
        **variables_of(plan),
    }


def _profile(facts: dict[str, Any]) -> str:
    name, digest = Path(str(facts.get(PROFILE, ""))).name, str(facts.get(PROFILE_DIGEST, ""))
    return f"{name} {digest[:DIGITS]}".strip()


def _of_transport(transport: Transport) -> dict[str, str]:
    adapters = (f"{a.name} {a.link_layer}".strip() for a in transport.adapters)
    stated = {n: text for n, text in sorted(transport.environment.items()) if FABRIC.match(n)}
    return {
        **stated,
        "transport": transport.verdict,
        "adapters": ", ".join(adapters),
        "interfaces": ", ".join(transport.interfaces),
        "provider": transport.provider,
    }
