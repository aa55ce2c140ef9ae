"""Parsers of training logs, one module per format, registered in `hpc_train.registry`.

Also here: `base`, `pattern` and `number`, the import paths that plug-ins use. Not here: what
parsers share, which is in `records.parsing`.
"""
