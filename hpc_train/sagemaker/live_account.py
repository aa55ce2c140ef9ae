"""LiveAccount: what an account of AWS says of its training jobs in a region."""

from hpc_train.base.value import Value


class InstanceType(Value, frozen=True, kw_only=True):
    """A type of instance, as `ml.g5.xlarge`; `most` is the quota of instances for training.

    Without an answer of EC2 the sizes are None.
    """

    name: str
    most: int
    cpus: int | None = None
    gpus: int | None = None
    gpu_model: str = ""
    memory_mib: int | None = None


class LiveAccount(Value, frozen=True, kw_only=True):
    """The answers of AWS; `unread` says what it did not answer.

    `roles` are those that SageMaker may assume, the one in use first; `image` is that of the last
    training job. `buckets` are those of the account, the one of SageMaker first.
    """

    account: str
    region: str
    roles: tuple[str, ...] = ()
    buckets: tuple[str, ...] = ()
    image: str = ""
    types: tuple[InstanceType, ...] = ()
    unread: tuple[str, ...] = ()

    @property
    def own_bucket(self) -> str:
        """Return the name of the bucket that the tools of SageMaker make in an account."""
        return f"sagemaker-{self.region}-{self.account}"
