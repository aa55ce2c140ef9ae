"""A job's image and the site's runtime -> ContainerPlan."""
