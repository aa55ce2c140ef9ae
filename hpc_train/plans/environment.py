"""The environment of the ranks: the site's, the job's, and what must never be left unset."""

from __future__ import annotations

from hpc_train.model.plan import Secret, Setting, Topology
from hpc_train.model.variable import ENV
from hpc_train.plans.resolve import Job, Site, rule


def resolve_env(job: Job, site: Site, topology: Topology) -> dict[str, Setting]:
    """Return variable -> setting; the job's value wins over the site's, both over the rule."""
    threads = "cores of the rank; unset, torchrun would give 1 and others all cores"
    unbuffered = "a log that a crash cut short must still hold the last line"
    settings = {
        "OMP_NUM_THREADS": rule(topology.cpus_per_task, threads),
        "PYTHONUNBUFFERED": rule(1, unbuffered),
    }
    for name, value in site.value.env.items():
        why = site.value.env_why.get(name, "")
        settings[name] = Setting(value=value, origin=site.origin(f"env.{name}"), why=why)
    for name, value in job.value.env.items():
        settings[name] = Setting(value=value, origin=job.origin(f"env.{name}"))
    return settings


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
