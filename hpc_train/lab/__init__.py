"""A multi-node Slurm cluster on one Linux machine, for testing job scripts and launchers."""
