"""Composition of the stages: one module per task of the user.

Here: calls of two or more stages, joined by values of `model`.
Not here: the rules of a stage (the stage's package), options and printing (`cli`).
"""
