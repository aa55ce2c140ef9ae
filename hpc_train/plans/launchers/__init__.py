"""Launchers: a topology -> argv and the words that name each rank; one module each."""
