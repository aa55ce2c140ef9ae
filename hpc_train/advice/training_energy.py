"""Power and time of a training -> its energy, within bounds."""

from __future__ import annotations

from msgspec.structs import replace

from hpc_train.advice.question import Question
from hpc_train.model.advice import AdviceRow, MeasuredStep
from hpc_train.model.value_range import Range

_KWH_J, _KILO = 3.6e6, 1000.0


def with_energy(row: AdviceRow, found: MeasuredStep | None, question: Question) -> AdviceRow:
    """Add the energy of the whole training [kWh] and what was metered.

    Of a measured row it is the metered power, over the time to the end. Without one it is at most
    the power limit of the GPUs over their hours; processors, network and cooling are not in that.
    """
    if row.end is None or row.gpu_hours is None:
        return row
    if found is not None and found.power_w is not None:
        energy = found.power_w.times(row.end.low / _KWH_J)
        return replace(row, energy_kwh=energy, meter=found.meter)
    limit, hours = question.machine.gpu_tdp_w, row.gpu_hours.high
    if limit is None or hours is None:
        return row
    return replace(row, energy_kwh=Range(high=limit * hours / _KILO), meter="limit")
