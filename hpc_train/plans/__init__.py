"""JobSpec + SiteProfile -> LaunchPlan; pure, every value with its origin and its reason.

Here: which value a job gets, from which source, and whether the site allows it.
`build.make_plan` calls the rest; they share a `context.Context`.
Not here: reading files (`jobs`, `sites`), the text of scripts (`scripts`), queries of a machine
(`machine`).
"""
