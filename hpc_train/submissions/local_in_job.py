"""What a job on this machine has: the variables of Slurm, if it runs by hand in an allocation."""

from hpc_train.model.batch_system import BatchSystem

LOCAL = BatchSystem(
    title="this machine",
    template="local.sh.j2",
    this_machine=True,
    node_list="SLURM_JOB_NODELIST",
    job_id="SLURM_JOB_ID",
    restart_count="SLURM_RESTART_COUNT",
    array_job="SLURM_ARRAY_JOB_ID",
    array_task="SLURM_ARRAY_TASK_ID",
)
