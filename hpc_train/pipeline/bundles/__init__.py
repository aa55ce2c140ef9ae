"""Layout of bundles, and reading of bundles."""
