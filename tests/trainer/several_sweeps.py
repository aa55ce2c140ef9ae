"""Sweeps of the benchmark, one for each argument, by the same ranks: they start torch only once."""

import sys

from hpc_train.trainer import WorkloadError
from hpc_train.trainer.collectives import parse_options
from hpc_train.trainer.emit import write_line
from hpc_train.trainer.spawn_ranks import exit_code_of, leave, run_ranks


def main() -> int:
    """Run them on the ranks that the environment describes."""
    return run_ranks(sweeps)


def sweeps() -> int:
    """Run them as one rank; rank 0 writes `next` between their outputs."""
    from hpc_train.trainer.collectives import sweep
    from hpc_train.trainer.process_group import joined

    code = 0
    with joined("auto", "auto") as group:
        for number, line in enumerate(sys.argv[1:]):
            if number and group.rank == 0:
                write_line("next")
            try:
                code |= sweep(parse_options(line.split()), group)
            except WorkloadError as error:
                if group.rank == 0:
                    write_line(str(error))
    return code


if __name__ == "__main__":
    leave(exit_code_of(main))
