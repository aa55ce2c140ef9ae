"""The twin of a site: a slurmctld without nodes that accepts and refuses jobs as the site does."""
