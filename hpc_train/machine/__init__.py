"""A live Slurm and a machine -> `Cluster`, `Hardware` and the draft of a profile.

Here: commands that inspect a cluster or a machine, and parsing of their output.
Not here: states of submitted jobs (`slurm`), comparison with a profile (`machine.drift`).
"""
