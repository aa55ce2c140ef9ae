"""`hpctrain lab up --sagemaker` and `down --sagemaker`."""

from __future__ import annotations

import click

from hpc_train.cli.busy import busy
from hpc_train.pipeline.lab import start_sagemaker, stop_sagemaker


def start() -> None:
    """Start the service, and print how to use it."""
    with busy("starting the SageMaker lab"):
        found = start_sagemaker()
    click.echo(f"SageMaker at {found.url}; profile: {found.profile}")
    click.echo(f"next: source {found.env_file}; hpctrain submit FILE --site sagemaker")


def stop() -> None:
    """Stop the service and its containers."""
    gone = stop_sagemaker()
    click.echo(f"the SageMaker in {gone} was stopped" if gone else "there is no SageMaker")
