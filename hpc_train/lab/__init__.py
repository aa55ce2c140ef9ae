"""A multi-node Slurm cluster on one Linux machine, for testing job scripts and launchers.

Here: its configuration files, networks and daemons, its start and its removal.
Not here: queries of any other Slurm (`machine`, `slurm`).
"""
