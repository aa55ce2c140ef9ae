"""Ways to train one model on several ranks; all give the same result.

Here: what each does to the model, its optimiser and its step.
Not here: data, events, and which ranks, models and batches a strategy accepts
(`hpc_train.jobs.strategies`).
"""

from hpc_train.trainer.strategies.base import Make, ParallelModel, Setup
from hpc_train.trainer.strategies.whole_model import STRATEGIES


def build(make: Make, setup: Setup) -> ParallelModel:
    """Return the model on this rank's device, with its optimiser, for the requested strategy."""
    name = setup.request.strategy
    if name in STRATEGIES:
        return STRATEGIES[name](make, setup)
    # Takes a second to import.
    from hpc_train.trainer.strategies.pipeline import STRATEGIES as OF_STAGES

    return OF_STAGES[name](make, setup)
