"""Catalogue of failures of training jobs, and the log lines that identify them."""
