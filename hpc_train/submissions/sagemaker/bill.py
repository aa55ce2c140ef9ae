"""What AWS bills for a job: seconds of each instance, not money."""

from __future__ import annotations

from typing import Any

from hpc_train.json_files import to_json, write_file
from hpc_train.model.run import RunFolder
from hpc_train.model.value import Value

FILE = "bill.json"


class Bill(Value, frozen=True, kw_only=True):
    """Billed seconds are those of one instance; a price is that of `instances` of them.

    `saved` is the share of the training time that spare capacity did not cost, 0 to 1.
    """

    job: str
    instance_type: str
    instances: int
    billable_s: int
    training_s: int
    saved: float

    @property
    def instance_hours(self) -> float:
        """Return the billed hours of all instances."""
        return self.billable_s * self.instances / 3600


def bill_of(job: dict[str, Any]) -> Bill | None:
    """Return the bill of a job as DescribeTrainingJob describes it; None before it is known."""
    billable, training = job.get("BillableTimeInSeconds"), job.get("TrainingTimeInSeconds")
    if billable is None:
        return None
    resources = job["ResourceConfig"]
    return Bill(
        job=job["TrainingJobName"],
        instance_type=resources.get("InstanceType", ""),
        instances=resources.get("InstanceCount", 1),
        billable_s=billable,
        training_s=training or 0,
        saved=max(0.0, 1 - billable / training) if training else 0.0,
    )


def write_bill(run: RunFolder, job: dict[str, Any]) -> None:
    """Write bill.json, if AWS states what it bills.

    Raises:
        StoreError: it cannot be written.
    """
    bill = bill_of(job)
    if bill is not None:
        write_file(run.path / FILE, to_json(bill))
