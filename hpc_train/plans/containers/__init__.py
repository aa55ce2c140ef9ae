"""A job's image and the site's runtime -> ContainerPlan.

Here: runtimes, mounts, and the command or the options of srun that open an image.
Not here: the keys `container` and `containers` (`model.container`).
"""
