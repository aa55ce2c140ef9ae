"""Rules on how NCCL finds its network: devices, interfaces, plug-ins."""

import re
from collections.abc import Iterator

from hpc_train.base.values import older
from hpc_train.lint.rule import RuleHit, Subject, rule
from hpc_train.lint.rules.environment import nccl_variables
from hpc_train.lint.script import JobScript

_GEFORCE = re.compile(r"rtx|geforce|\b[2345]0[6789]0(?:ti)?\b", re.IGNORECASE)
_LIBFABRIC = ("aws libfabric", "libfabric", "ofi")
_FABRICS = re.compile(r"efa|cxi|opx|verbs|psm[23x]")


@rule(
    "HT520",
    "info",
    "NCCL_IB_GID_INDEX",
    advice="leave it out with NCCL 2.21 or later, unless the site's documentation requires it",
)
def gid_index(subject: Subject) -> Iterator[RuleHit]:
    version = subject.context.nccl
    for found in subject.script.exported_values("NCCL_IB_GID_INDEX"):
        if found.value == "-1" or older(version, "2.21"):
            continue
        message = (
            f"NCCL_IB_GID_INDEX={found.value} disables the selection that NCCL makes since 2.21"
        )
        yield RuleHit(found.line, message, severity="warning" if version else None)


@rule(
    "HT527",
    "info",
    "interface by name",
    advice="leave it out, use the interface of the site's profile, or exclude interfaces: "
    "NCCL_SOCKET_IFNAME=^lo,docker",
)
def interface_by_name(subject: Subject) -> Iterator[RuleHit]:
    script, fabric, site = subject.script, subject.context.fabric, subject.context.site
    named = ",".join(site.network.interfaces) if site and site.network else ""
    for found in subject.script.exported_values("NCCL_SOCKET_IFNAME", "GLOO_SOCKET_IFNAME"):
        value = found.value
        # All nodes of the site may be names of one machine.
        if value == "lo" and site and site.rendezvous.host == "loopback":
            continue
        if value == "lo" and (script.asked.nodes or 1) > 1:
            yield RuleHit(found.line, f"{found.name}=lo cannot reach other nodes", severity="error")
        elif value.startswith("^") and "lo" not in value[1:].split(","):
            if found.name.startswith("NCCL") and script.asked.nodes != 1:
                yield RuleHit(found.line, f"{found.name}={value} includes lo", severity="warning")
        elif re.fullmatch(r"=?(eth|en[opsx])\w*", value) and value.lstrip("=") != named:
            fast = fabric in ("infiniband", "slingshot")
            where = f", and this site has {fabric}" if fast else ""
            message = f"{found.name}={value} is an interface name of one cluster{where}"
            yield RuleHit(found.line, message, severity="warning" if fast else None)


@rule("HT528", "warning", "fast transport disabled", advice="remove it when the fault is found")
def fast_path_off(subject: Subject) -> Iterator[RuleHit]:
    script, fabric = subject.script, subject.context.fabric
    one_node = script.asked.batch and script.asked.nodes == 1
    # One node or another fabric needs no verbs; GeForce has no peer-to-peer access.
    harmless = {
        "NCCL_P2P_DISABLE": _GEFORCE.search(script.text) is not None,
        "NCCL_SHM_DISABLE": False,
        "NCCL_IB_DISABLE": one_node
        or fabric in ("ethernet", "slingshot", "efa")
        or _by_libfabric(script),
    }
    for found in script.exported_values(*harmless):
        if found.value == "1" and not harmless[found.name]:
            # The nodes may have no InfiniBand.
            unsure = (
                found.name == "NCCL_IB_DISABLE"
                and fabric is None
                and not script.sets("NCCL_IB_HCA")
            )
            yield RuleHit(
                found.line,
                f"{found.name}=1 is a debug setting",
                severity="info" if unsure else None,
            )
    for found in subject.script.exported_values("NCCL_NET"):
        if found.value.lower() == "socket" and subject.context.fabric != "ethernet":
            if subject.script.asked.nodes != 1:
                yield RuleHit(found.line, "NCCL_NET=Socket uses TCP only")


def _by_libfabric(script: JobScript) -> bool:
    """Whether NCCL's plug-in for libfabric is the transport, so that none uses InfiniBand verbs."""
    providers = (one.value.lower() for one in script.settings("FI_PROVIDER"))
    plugins = (one.value.lower() for one in script.settings("NCCL_NET", "NCCL_NET_PLUGIN"))
    return (
        any(map(_FABRICS.search, providers))
        or any(name in _LIBFABRIC for name in plugins)
        or any("ofi-nccl" in one.value for one in script.assignments)
    )


@rule(
    "HT523",
    "warning",
    "NCCL_DEBUG left on",
    advice="write NCCL_DEBUG=WARN, or keep INFO and write one file per process "
    "(NCCL_DEBUG_FILE=…%h.%p), or limit it (NCCL_DEBUG_SUBSYS=INIT,NET)",
)
def debug_left_on(subject: Subject) -> Iterator[RuleHit]:
    script = subject.script
    limited = script.sets("NCCL_DEBUG_FILE", "NCCL_DEBUG_SUBSYS")
    for found in subject.script.exported_values("NCCL_DEBUG"):
        level = found.value.upper()
        if level == "TRACE" or (level == "INFO" and not limited):
            yield RuleHit(
                found.line,
                f"NCCL_DEBUG={found.value}",
                severity="info" if level == "INFO" else None,
            )
    for found in subject.script.exported_values("NCCL_DEBUG_SUBSYS"):
        if found.value.upper() == "ALL":
            yield RuleHit(found.line, "NCCL_DEBUG_SUBSYS=ALL prints each collective")


@rule(
    "HT524",
    "warning",
    "NCCL_ALGO or NCCL_PROTO",
    advice="leave it out; to forbid one protocol write NCCL_PROTO=^LL128",
)
def fixed_algorithm(subject: Subject) -> Iterator[RuleHit]:
    efa = subject.context.fabric == "efa" or any(
        found.value == "efa" for found in subject.script.settings("FI_PROVIDER")
    )
    for found in subject.script.exported_values("NCCL_ALGO", "NCCL_PROTO"):
        if found.value.startswith("^") and not efa:
            continue
        dangerous = found.name == "NCCL_PROTO" and "LL128" in found.value.upper()
        reason = "disables AWS's tuner" if efa else "replaces NCCL's own choice"
        reason = "can corrupt data" if dangerous and not efa else reason
        yield RuleHit(
            found.line,
            f"{found.name}={found.value} {reason}",
            severity=None if efa or dangerous else "info",
        )


@rule(
    "HT531", "warning", "value that NCCL does not accept", advice="write one of the allowed values"
)
def wrong_value(subject: Subject) -> Iterator[RuleHit]:
    values = nccl_variables().values
    for found in subject.script.exported_values(*values):
        allowed = values[found.name]
        if found.value.upper() not in allowed:
            words = [word for word in allowed if not (word.isdigit() and "LOC" in allowed)]
            yield RuleHit(found.line, f"{found.name}={found.value}; allowed: {', '.join(words)}")
