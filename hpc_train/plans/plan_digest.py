"""The digest of a plan, which names its runs."""

from __future__ import annotations

import hashlib

import msgspec

from hpc_train.model.plan import LaunchPlan
from hpc_train.model.value import encode_unit
from hpc_train.plans.distributed_backend import follows_from_gpus


def plan_digest(plan: LaunchPlan) -> str:
    """Return eight hex digits that depend on the job, but not on line numbers."""
    # The default backend of torch adds no information.
    backend = "" if plan.backend == follows_from_gpus(plan.topology) else plan.backend
    # The text that the launcher adds to every script does not depend on the job.
    launch = msgspec.structs.replace(plan.launch, shell=msgspec.UNSET)
    bare = msgspec.structs.replace(
        plan, settings={}, warnings=(), notes=(), backend=backend, launch=launch
    )
    return hashlib.sha256(msgspec.json.encode(bare, enc_hook=encode_unit)).hexdigest()[:8]
