"""Parsers of training logs, one module for each family of formats, in `hpc_train.base.registry`.

Here: the lines of programs, with the unit and scope of each value; `base`, `pattern` and `number`
are the interface for plug-ins, and what parsers share.
Not here: reading files (`logs`), failures (`signatures`).
"""
