"""A run -> recorded facts on where and with which software it ran, by name."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import msgspec

from hpc_train.model.run import PROFILE, PROFILE_DIGEST, Manifest, Run
from hpc_train.model.transport import Transport
from hpc_train.model.value import encode_unit
from hpc_train.runs.run_conditions import FABRIC, commit_of, cut, variables_of

DIGITS = 12
_DIRECTIVES = ("partition", "qos", "account", "constraint", "exclusive", "reservation")


def run_facts(run: Run | None, transport: Transport | None) -> dict[str, str]:
    """Return the facts; a name without a value is unknown."""
    found = _planned(run.manifest) if run and run.manifest else {}
    if run is not None:
        found["nodes"] = _nodes(run)
    if transport is not None:
        found |= _of_transport(transport)
    return {name: cut(text) for name, text in found.items() if text}


def _planned(manifest: Manifest) -> dict[str, str]:
    plan, facts = manifest.plan, manifest.provenance
    directives = dict(plan.directives)
    directive_values = {
        name: directives[name] or "yes" for name in _DIRECTIVES if name in directives
    }
    spec = msgspec.json.encode(manifest.spec, enc_hook=encode_unit)
    return {
        "site": plan.site,
        "profile": _profile(facts),
        **directive_values,
        "launcher": plan.launcher,
        "backend": plan.backend,
        "container": plan.container.image if plan.container else "none",
        "modules": " ".join(plan.modules) or "none",
        "commit": commit_of(facts.get("git")),
        "config": hashlib.sha256(spec).hexdigest()[:DIGITS],
        "template": f"{plan.template} {manifest.template_digest[:DIGITS]}",
        "script": manifest.script_digest[:DIGITS],
        "submitted with": f"hpctrain {facts['hpctrain']}" if "hpctrain" in facts else "",
        "submitted from": " ".join(str(facts[k]) for k in ("host", "kernel") if facts.get(k)),
        **variables_of(plan),
    }


def _profile(facts: dict[str, Any]) -> str:
    name, digest = Path(str(facts.get(PROFILE, ""))).name, str(facts.get(PROFILE_DIGEST, ""))
    return f"{name} {digest[:DIGITS]}".strip()


def _nodes(run: Run) -> str:
    status, report = run.status, run.job_report
    names = (status.nodes if status else "") or (report.nodes if report else "")
    return names or (status.host if status else "")


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
