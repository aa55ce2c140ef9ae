"""A SageMaker on this machine: its API, an S3 and a CloudWatch over HTTP, for unmodified boto3.

Containers are namespaces (network, mounts, processes, host name) with a bound /opt/ml; their image
is this machine.

Here: the calls that hpctrain makes, with the standard library only.
Not here: IAM, prices, other calls; the executor (`submissions`).
"""
