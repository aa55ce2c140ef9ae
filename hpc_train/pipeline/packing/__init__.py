"""Evidence and its report -> a bundle.

Here: which files a bundle has, and writing them.
Not here: the layout, which reading shares (`pipeline.bundles`).
"""
