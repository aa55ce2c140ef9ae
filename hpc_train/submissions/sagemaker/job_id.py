"""The id of a training job: its region and its name, which is unique there in an account."""

from __future__ import annotations

from hpc_train.model.value import Value


class JobId(Value, frozen=True, kw_only=True):
    """Region and name; written as `eu-west-1/hpct-digits-0f3a`.

    Both are known before the request, so that a job whose answer was lost is found by its name.
    """

    region: str
    name: str

    @classmethod
    def parse(cls, text: str) -> JobId:
        """Read an id as it is written."""
        region, _, name = text.partition("/")
        return cls(region=region, name=name)

    def __str__(self) -> str:
        """Write the id."""
        return f"{self.region}/{self.name}"
