"""One module per kind of log; each is registered in `hpc_train.registry`.

Here: the lines of one program, with unit and scope of each value, and notations that several
programs share.
Not here: reading files and finding lines (`records`), failures (`records.signatures`).
"""
