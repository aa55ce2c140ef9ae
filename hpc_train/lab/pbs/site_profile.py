"""The site profile of the small PBS, which `--site lab-pbs` finds."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path

from hpc_train.lab.pbs.placement import NodeSize
from hpc_train.lab.pbs.server_answers import QUEUE

_PROFILE = """\
# Made by `hpctrain lab up`; `hpctrain lab down` removes it.
schema: 1
name: lab-pbs
description: A small PBS on this one machine ({nodes}), made by hpctrain lab up --pbs
scheduler: pbs
pbs: {{project: -A, shape: select, place: scatter}}
sources:
  - what: the settings of the small PBS
    date: {date}
    confidence: high
launchers:
  default: torchrun
  allowed: [torchrun, accelerate, spawn, single]
  forbidden: {{mpirun: all nodes are this machine}}
partitions:
  - name: {queue}
    default: true
    max_time: 1h
    max_nodes: {number}
    cpus_per_node: {cores}
    gpus_per_node: 0
    mem_per_node: {memory}M
rendezvous: {{host: loopback}}
poll: 2s
setup:
  - {path}
env: {{GLOO_SOCKET_IFNAME: lo}}
env_why: {{GLOO_SOCKET_IFNAME: all nodes are this machine}}
"""


def profile_text(size: NodeSize, date: str) -> str:
    """Return the profile of a small PBS; jobs find the Python that started it."""
    programs = shlex.quote(str(Path(sys.executable).parent))
    return _PROFILE.format(
        nodes=f"{size.nodes} nodes" if size.nodes > 1 else "1 node",
        date=date,
        queue=QUEUE,
        number=size.nodes,
        cores=size.ncpus,
        memory=size.mem >> 20,
        path=json.dumps(f"PATH={programs}:$PATH"),
    )
