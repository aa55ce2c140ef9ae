"""The site of a command that names none: the scheduler and the profiles that match this host.

Here: detection, its cache, and the choice of the site.
Not here: the commands of `hpctrain site` (`pipeline.site`).
"""
