"""JobEnergy: the energy of a job, as the accounting states it."""

from hpc_train.model.value import Value


class JobEnergy(Value, frozen=True, kw_only=True):
    """energy.json: the energy of a whole job [J]; None if the accounting does not know it."""

    job: str
    energy_j: float | None
    source: str = "sacct ConsumedEnergyRaw"
