"""What Slurm gives inside a job."""

from hpc_train.model.batch_system import BatchSystem

SLURM = BatchSystem(
    title="Slurm",
    template="slurm.sbatch.j2",
    prefix="#SBATCH --",
    directives="hpc_train.plans.directives:of_slurm",
    steps=True,
    starter="hpc_train.plans.launchers.srun:on_each_node",
    node_rank=("SLURM_NODEID",),
    node_name="SLURMD_NODENAME",
    node_list="SLURM_JOB_NODELIST",
    nodes='scontrol show hostnames "$SLURM_JOB_NODELIST"',
    job_id="SLURM_JOB_ID",
    restart_count="SLURM_RESTART_COUNT",
    array_job="SLURM_ARRAY_JOB_ID",
    array_task="SLURM_ARRAY_TASK_ID",
    cluster="SLURM_CLUSTER_NAME",
    cores="SLURM_CPUS_ON_NODE",
    instead={},
    network_option=True,
    memory_by_request=True,
)
