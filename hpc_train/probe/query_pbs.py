"""A live PBS -> LivePbs."""

from __future__ import annotations

from collections.abc import Mapping

from hpc_train.errors import ProbeError
from hpc_train.model.live_pbs import LivePbs, PbsNode, PbsQueue
from hpc_train.probe.parse_pbs_output import Attributes, from_json, from_text, resources
from hpc_train.probe.run_program import Ask, ask

_JSON = ("-F", "json")
_TIMEOUT_S = 60.0


def read_pbs(question: Ask = ask) -> LivePbs:
    """Query the server, its queues and its nodes; the nodes may be missing.

    Raises:
        ProbeError: server or queues cannot be read.
    """
    server = _must(question, ("qstat", "-B", "-f"), "Server")
    queues = _must(question, ("qstat", "-Q", "-f"), "Queue")
    nodes, problem = _entries(question, ("pbsnodes", "-a"), "nodes")
    name, attributes = next(iter(server.items()))
    kept = attributes.get("job_history_enable") == "True"
    return LivePbs(
        name=name,
        version=attributes.get("pbs_version", ""),
        default_queue=attributes.get("default_queue", ""),
        history=attributes.get("job_history_duration", "336:00:00") if kept else None,
        default=resources(attributes, "resources_default"),
        available=resources(attributes, "resources_available"),
        queues=tuple(_queue(name, one) for name, one in queues.items()),
        nodes=tuple(_node(name, one) for name, one in nodes.items()),
        unread=(f"could not be read: pbsnodes -a: {problem}",) if problem else (),
    )


def _must(question: Ask, argv: tuple[str, ...], key: str) -> Attributes:
    found, problem = _entries(question, argv, key)
    if problem:
        raise ProbeError(
            f"`{' '.join(argv)}`: {problem}",
            "run it on a login node where PBS's commands work",
        )
    return found


def _entries(question: Ask, argv: tuple[str, ...], key: str) -> tuple[Attributes, str]:
    """Return the entries of an answer, and why there are none; broken JSON is asked for as text."""
    answer = question(*argv, *_JSON, timeout_s=_TIMEOUT_S)
    found = None if answer.problem else from_json(answer.text, key)
    if not found:
        answer = question(*argv, timeout_s=_TIMEOUT_S)
        found = from_text(answer.text, key)
    return found, "" if found else answer.problem or "an unknown format"


def _queue(name: str, attributes: Mapping[str, str]) -> PbsQueue:
    routes = attributes.get("route_destinations", "")
    return PbsQueue(
        name=name,
        open="True" == attributes.get("enabled") == attributes.get("started"),
        hidden=attributes.get("from_route_only") == "True",
        # A destination may be a queue of another server: NAME@SERVER.
        destinations=tuple(one.partition("@")[0].strip() for one in routes.split(",") if one),
        most=resources(attributes, "resources_max"),
        least=resources(attributes, "resources_min"),
        default=resources(attributes, "resources_default"),
        chunk=resources(attributes, "default_chunk"),
    )


def _node(name: str, attributes: Mapping[str, str]) -> PbsNode:
    own = resources(attributes, "resources_available")
    return PbsNode(
        name=name,
        host=own.get("host") or name,
        resources=own,
        queue=attributes.get("queue", ""),
        sharing=attributes.get("sharing", ""),
    )
