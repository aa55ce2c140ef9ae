"""Any job script -> errors, their reasons, and what to write instead.

Here: reading a script as sbatch and the shell read it, and applying fixes; `check.lint_script`
calls the rest.
Not here: what a site allows (`model.limits`, which `plans` uses too), writing scripts (`scripts`).
"""
