"""The twin of a site: a slurmctld without nodes that accepts and refuses jobs as the site does.

Here: a profile as slurm.conf, accounts and a job_submit plug-in, and the daemons of a twin.
Not here: checks of a profile without a scheduler (`sites`), the jobs that a twin is asked for
(`pipeline`).
"""
