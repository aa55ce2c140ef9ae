"""Run folders: all files of a run.

Here: creating, finding and reading `results/<name>/<run-id>/`, and the state of a run from its
files.
Not here: starting a run and the answers of its scheduler (`submissions`), its logs (`logs`).
"""
