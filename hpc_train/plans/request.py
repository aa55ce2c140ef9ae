"""What a launcher is given: the topology, and the words of the job and the site for it."""

from __future__ import annotations

from collections.abc import Mapping

from hpc_train.model.plan import Binding, LaunchRequest, Setting, Topology
from hpc_train.plans.containers.resolve import resolve_container
from hpc_train.plans.elastic import resolve_elastic
from hpc_train.plans.resolve import Job, Site


def make_request(
    job: Job, site: Site, topology: Topology, env: Mapping[str, Setting]
) -> LaunchRequest:
    """Gather what launchers need of a job and a site.

    Raises:
        PlanError: the container or the elastic bounds do not fit.
    """
    launchers = site.value.launchers
    container = resolve_container(job, site, topology, env)
    inside = site.value.containers.mpi if container and site.value.containers else None
    return LaunchRequest(
        topology=topology,
        command=job.value.command,
        scheduler=site.value.scheduler,
        srun_args=launchers.srun_args,
        mpi=inside or launchers.mpi,
        exported=(*env, *job.value.secrets),
        gpu_request=site.value.gpu_request,
        nested=False,
        args=job.value.launcher_args,
        mpirun_args=launchers.mpirun_args,
        binding=Binding(numa=launchers.numa_binding, mpirun=launchers.bind_to),
        container=container,
        elastic=resolve_elastic(job),
        torch=job.value.torch or site.value.torch,
        openmpi=launchers.openmpi,
    )
