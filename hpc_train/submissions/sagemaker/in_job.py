"""What SageMaker gives inside a training job: its script starts on each host, in the image."""

from hpc_train.model.batch_system import BatchSystem

_NO_STEPS = "SageMaker has no srun"
_NO_SSH = "it starts ranks through ssh, which the hosts of a training job do not have"
_FOLDER = "hpc_train.submissions.sagemaker"

SAGEMAKER = BatchSystem(
    title="SageMaker",
    template="sagemaker.sh.j2",
    node_rank=("SM_CURRENT_HOST_RANK",),
    node_name="SM_CURRENT_HOST",
    node_list="hpctrain_hosts",
    job_id="TRAINING_JOB_NAME",
    cores="SM_NUM_CPUS",
    image_of_job=True,
    whole_nodes=True,
    check=f"{_FOLDER}.profile_check:check",
    request=f"{_FOLDER}.training_job:training_job",
    refused={
        "srun": _NO_STEPS,
        "ibrun": _NO_STEPS,
        "mpirun": _NO_SSH,
        "mpiexec": _NO_SSH,
        "deepspeed": _NO_SSH,
        "accelerate": "the number of a host is known only on it; torchrun starts the same ranks",
    },
)
