"""Executor `sagemaker`: scripts -> training jobs of Amazon SageMaker, through boto3.

Here: the request of a job, its states, its logs in CloudWatch, and the errors of AWS as sentences.
Not here: AWS's own Python SDKs; boto3 is imported only by functions that call AWS.
"""
