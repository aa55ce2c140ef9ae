"""Parsers of training logs, one module per format, registered in `hpc_train.registry`.

Here: the lines of one program, with the unit and scope of each value; `base`, `pattern` and
`number` are the import paths that plug-ins use.
Not here: code that parsers share (`records.parsing`), reading files (`records`), failures
(`records.signatures`).
"""
