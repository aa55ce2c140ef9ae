"""The twin of a site: a real slurmctld without nodes, which accepts and refuses as it does."""
