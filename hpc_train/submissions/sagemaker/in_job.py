"""What SageMaker gives inside a training job: its script starts on each host, in the image."""

from hpc_train.model.batch_system import CANCELLED, ONE_BY_ONE, BatchSystem

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
    instead={
        "lifecycle": "with sagemaker.spot, an interrupted or retried job "
        "resumes from /opt/ml/checkpoints",
        "signal_before_end": "TERM at the time limit, the end of the hosts 120 s later",
        "preemption": "with sagemaker.spot, save checkpoints at regular intervals",
        "arrays": "each run is a training job",
        "dependency": ONE_BY_ONE,
        "hold": CANCELLED,
        "placement: nested": "each run is a training job",
        "elastic": "a host that fails ends the job; hpctrain retry RUN starts it again",
        "--exclude-failed-nodes": "AWS chooses the hosts of each job",
    },
)
