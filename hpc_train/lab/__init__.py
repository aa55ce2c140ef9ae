"""A real multi-node Slurm on one Linux machine, to try job scripts and launchers on."""
