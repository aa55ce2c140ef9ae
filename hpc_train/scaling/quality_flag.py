"""Flag: one reason to doubt the numbers of a run or of a point."""

from enum import Enum

from hpc_train.base.value import Value


class FlagCode(str, Enum):
    """The kinds of flags in the column `flags`; docs/reading-a-report.md explains them."""

    ONE_RUN = "n=1"
    ONE_BASELINE_RUN = "baseline n=1"
    NO_SPREAD = "no spread"
    ONE_SESSION = "one session"
    SHORT = "short"
    SLOW_STEPS = "slow steps"
    GATE = "gate"
    RANKS = "ranks"
    SUPERLINEAR = "superlinear"
    VARIES = "varies"
    ACCURACY = "accuracy"
    LOSS = "loss"
    WHOLE_SECONDS = "whole seconds"
    UNMEASURED = "no result"
    NOT_FINITE = "not finite"
    REQUEUED = "requeued"
    EFFICIENCY = "efficiency"
    CONTRADICTION = "contradiction"
    MEMORY = "memory"
    MFU = "MFU"
    UNIT = "unit"
    THROTTLED = "throttled"
    TRANSPORT = "transport"


# The number itself is wrong, or was not measured under the conditions of its series.
IMPLAUSIBLE = frozenset(
    {
        FlagCode.EFFICIENCY, FlagCode.CONTRADICTION, FlagCode.MEMORY, FlagCode.MFU,
        FlagCode.UNIT, FlagCode.THROTTLED, FlagCode.TRANSPORT,
    }
)  # fmt: skip


class Flag(Value, frozen=True, order=True):
    """The kind of the doubt, and its detail; in files it is the text `code: detail`."""

    code: FlagCode
    detail: str

    def __str__(self) -> str:
        """Return the text that files contain."""
        return f"{self.code.value}: {self.detail}"


def flag_of(text: str) -> Flag | None:
    """Return the flag that was written as this text; None if its kind is not known."""
    name, _, detail = text.partition(": ")
    return Flag(FlagCode(name), detail) if name in set(FlagCode) else None


LOSS_LOST = Flag(FlagCode.NOT_FINITE, "loss at the end")
