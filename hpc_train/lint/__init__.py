"""Check job scripts: report errors, their reasons, and the correction.

Here: reading a script as sbatch and the shell read it, and applying fixes; the entry point is
`lint_script.lint_script`.
Not here: what a site allows (`plans.queue_limits`, which `plans` uses too), writing scripts
(`scripts`).
"""
