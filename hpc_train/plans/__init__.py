"""JobSpec + SiteProfile -> LaunchPlan; pure, every value with its origin and its reason.

Here: which value a job gets, from whom, and whether the site allows it. `build.make_plan` calls the
rest; `context.Context` is what they share; `launchers` has one module for each way to start ranks.
Not here: reading files (`specs`, `sites`), the text of scripts (`scripts`), and what asks a
machine (`probe`).
"""
