"""What a launcher is given: the topology, and the words of the job and the site for it."""

from __future__ import annotations

from hpc_train.model.plan import Binding, LaunchRequest, Topology
from hpc_train.plans.containers.resolve import resolve_container
from hpc_train.plans.context import Job, Site
from hpc_train.plans.elastic import resolve_elastic
from hpc_train.plans.environment import JobEnvironment
from hpc_train.plans.gpu_request import type_settings


def make_request(
    job: Job, site: Site, topology: Topology, environment: JobEnvironment
) -> LaunchRequest:
    """Gather what launchers need of a job and a site.

    Raises:
        PlanError: the container or the elastic bounds do not fit.
    """
    launchers, env = site.value.launchers, environment.variables
    container = resolve_container(job, site, topology, environment)
    kind = type_settings(job, site, topology).get("gpu_type")
    inside = site.value.containers.mpi if container and site.value.containers else None
    return LaunchRequest(
        topology=topology,
        command=job.value.command,
        scheduler=site.value.scheduler,
        srun_args=launchers.srun_args,
        mpi=inside or launchers.mpi,
        exported=(*env, *job.value.secrets),
        gpu_request=site.value.gpu_request,
        gpu_type=kind.value if kind else None,
        nested=False,
        args=job.value.launcher_args,
        mpirun_args=launchers.mpirun_args,
        binding=Binding(numa=launchers.numa_binding, mpirun=launchers.bind_to),
        container=container,
        elastic=resolve_elastic(job),
        torch=job.value.torch or site.value.torch,
        openmpi=launchers.openmpi,
    )
