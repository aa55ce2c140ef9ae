"""Pairs of scripts: one that a rule finds, one that it does not."""

import re
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from hpc_train.base.decode import decode
from hpc_train.base.errors import SiteProfileError
from hpc_train.base.slurm_options import Refusal
from hpc_train.base.values import Version
from hpc_train.lint.rule import LintContext
from hpc_train.sites.profile import SiteProfile
from hpc_train.slurm.live_cluster import SlurmAnswer

SITE = {
    "schema": 1,
    "name": "demo",
    "description": "for tests",
    "scheduler": "slurm",
    "launchers": {
        "default": "srun",
        "allowed": ["srun", "torchrun"],
        "forbidden": {"mpirun": "no MPI here"},
    },
    "partitions": [
        {
            "name": "gpu",
            "default": True,
            "max_nodes": 4,
            "max_time": "1-00:00:00",
            "cpus_per_node": 64,
            "gpus_per_node": 4,
        },
        {"name": "test", "max_time": "30m"},
    ],
    "account": {"required": True},
    "gpu_request": "gres",
    "mem_request": "forbidden",
}
# A site that knows more: bounds, qos, words that lead to a partition, what it wants and forbids.
TIGHT = {
    **SITE,
    "launchers": {
        "default": "srun",
        "allowed": ["srun", "torchrun"],
        "warned": {"torchrun": "slow here"},
    },
    "partitions": [
        {
            "name": "batch",
            "default": True,
            "max_time": "12h",
            "max_gpus": 16,
            "bounds": [{"nodes": "<=2", "max_time": "2h"}],
        },
        {
            "name": "a100",
            "select": {"constraint": "a100", "account_suffix": "@a100"},
            "max_nodes": 2,
        },
        {"name": "debug", "max_node_minutes": 90},
    ],
    "qos": [{"name": "short", "max_time": "30m"}],
    "account": {"pattern": r"project_[0-9]+|\w+@a100"},
    "gpu_request": "none",
    "mem_request": "allowed",
    "cpu_request": "forbidden",
    "required": ["time", "mem"],
    "plugin_options": {"gpu-debug": "value", "nv": "none"},
    "forbidden": {"export": "discouraged", "--nodelist": "the job is deleted"},
}
# A site that names some of its partitions and allows the others.
OPEN = {**SITE, "partitions": [{"name": "*"}, {"name": "gpu", "default": True}]}
# Sites with PBS: one with chunks, which knows much, and one with totals.
CHUNKS = {
    **SITE,
    "scheduler": "pbs",
    "launchers": {"default": "mpiexec", "allowed": ["mpiexec", "torchrun", "mpirun"]},
    "pbs": {"project": "-A"},
    "partitions": [
        {
            "name": "gpu",
            "max_nodes": 4,
            "max_time": "1d",
            "cpus_per_node": 64,
            "gpus_per_node": 4,
            "mem_per_node": "500G",
        }
    ],
    "gpu_request": "gpus-per-node",
    "mem_request": "allowed",
    "required": ["time"],
    "directives": {"l": "filesystems=home:eagle"},
}
TOTALS = {
    **CHUNKS,
    "pbs": {"project": "-P", "shape": "flat", "live_output": False},
    "account": {},
    "mem_request": "required",
    "required": [],
    "directives": {},
}
# A site of PBS without a queue for jobs that name none.
CHOICE = {**CHUNKS, "partition_choice": "job", "required": [], "directives": {}}
# What Slurm says of a script, by a name.
ANSWERS = {
    "accepted": SlurmAnswer(outcome="accepted", words="to start at once on n1"),
    "refused": SlurmAnswer(
        outcome="refused",
        words="allocation failure: Invalid feature specification",
        refusal=Refusal(meaning="no such feature", options=("constraint",)),
    ),
    "unanswered": SlurmAnswer(outcome="unanswered", words="no answer within 30.0 s"),
}


class Case(NamedTuple):
    """A script, what the rule with this id is expected to say, and where the script will run."""

    rule: str
    wrong: bool
    text: str
    context: LintContext


def site(data: dict[str, Any] = SITE) -> SiteProfile:
    return decode(data, SiteProfile, {"": "demo.yaml"}, SiteProfileError).value


def context_of(words: list[str]) -> LintContext:
    given = dict(word.partition("=")[::2] for word in words)
    sites = {
        "site": SITE,
        "tight": TIGHT,
        "open": OPEN,
        "pbs": CHUNKS,
        "flat": TOTALS,
    }
    sites["choice"] = CHOICE
    return LintContext(
        site=next((site(data) for word, data in sites.items() if word in given), None),
        nccl=Version.parse(given["nccl"]) if "nccl" in given else None,
        slurm=Version.parse(given["slurm"]) if "slurm" in given else None,
        answer=ANSWERS[given["answer"]] if "answer" in given else None,
    )


def cases() -> list[Case]:
    """Read all pairs."""
    paths = sorted((Path(__file__).parent / "pairs").glob("*.txt"))
    return [case for path in paths for case in cases_of(path)]


def cases_of(path: Path) -> list[Case]:
    """Read the pairs of a file; `#!/bin/bash` stands before each script that is not `bare`."""
    found: list[Case] = []
    text = path.read_text(encoding="utf-8")
    for head, body in re.findall(r"^## (HT.*)\n((?:(?!## HT).*\n)*)", text, re.MULTILINE):
        rule, kind, *words = head.split()
        body = body.replace("<CR>", "\r").replace("<BYTE>", "\udcfc")
        script = body if "bare" in words else f"#!/bin/bash\n{body}"
        found.append(Case(rule, kind == "wrong", script, context_of(words)))
    return found


@pytest.fixture
def demo_site() -> SiteProfile:
    return site()
