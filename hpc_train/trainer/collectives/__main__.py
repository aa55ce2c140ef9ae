"""`python -m hpc_train.trainer.collectives allreduce`."""

from __future__ import annotations

from hpc_train.trainer.collectives.sweep import main
from hpc_train.trainer.spawn_ranks import exit_code_of, leave

if __name__ == "__main__":
    leave(exit_code_of(main))
