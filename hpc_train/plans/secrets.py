"""Variables whose value is nowhere written: inherited by name, or read from a file in the job."""

from __future__ import annotations

from hpc_train.model.plan import Secret, Setting
from hpc_train.model.variable import ENV
from hpc_train.plans.context import Job


def resolve_secrets(job: Job) -> tuple[Secret, ...]:
    """Return the variables whose values only the job may see."""
    return tuple(
        Secret(name=name, file=None if where == ENV else where)
        for name, where in job.value.secrets.items()
    )


def secret_settings(job: Job) -> dict[str, Setting]:
    """Return where each secret comes from; its value is nobody's to print."""
    why = {True: "from the shell you submit from", False: "read by the job, mode 0600"}
    return {
        f"secrets.{name}": Setting(
            value=where, origin=job.near(f"secrets.{name}"), why=why[where == ENV]
        )
        for name, where in job.value.secrets.items()
    }
