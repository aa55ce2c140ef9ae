"""`python -m hpc_train` is the `hpctrain` command."""

from hpc_train.cli.main import main

main()
