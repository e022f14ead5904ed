"""boto3 as a reader of answers that we did not write."""

import os
import boto3
from botocore.config import Config
from botocore.exceptions import ClientError

# The page "Common Error Types" of the IAM API Reference, and the codes that the Query API gives for
# signatures and temporary credentials ("Troubleshoot IAM", "Signature Version 4 troubleshooting").
COMMON = {
    "AccessDenied", "AccessDeniedException", "ExpiredToken", "ExpiredTokenException",
    "IncompleteSignature", "InternalFailure", "InvalidAction", "InvalidClientTokenId",
    "InvalidParameterCombination", "InvalidParameterValue", "MissingAuthenticationToken",
    "MissingParameter", "OptInRequired", "RequestExpired", "ServiceUnavailable",
    "SignatureDoesNotMatch", "Throttling", "ThrottlingException", "ValidationError",
}
# Codes that AWS gives although its model of the call does not list them: docs/iam-ledger.md, I1.
BEYOND_THE_MODEL = {("CreateRole", "NoSuchEntity")}


def client(service, endpoint, credentials=None):
    id, secret, token = credentials or ("AKIAROOT", "root's secret", None)
    return boto3.client(
        service, endpoint_url=endpoint, region_name="us-east-1", aws_access_key_id=id,
        aws_secret_access_key=secret, aws_session_token=token,
        config=Config(retries={"total_max_attempts": 1}, parameter_validation=False,
                      connect_timeout=60, read_timeout=60))


def known_codes(of, operation):
    shapes = of.meta.service_model.operation_model(operation).error_shapes
    return {s.metadata.get("error", {}).get("code", s.name) for s in shapes}


class Answer:
    """What one call answered: a code, or a body."""

    def __init__(self, status, code, body, message=""):
        self.status, self.code, self.body, self.message = status, code, body, message

    def __repr__(self):
        return f"{self.status} {self.code or self.body} {self.message}"


def snake(operation):
    from botocore import xform_name
    return xform_name(operation)


def call(of, operation, **parameters):
    """Calls, and holds the code of a refusal against botocore's model of the call."""
    try:
        body = getattr(of, snake(operation))(**parameters)
    except ClientError as error:
        meta = error.response["ResponseMetadata"]
        details = error.response["Error"]
        return Answer(meta["HTTPStatusCode"], details["Code"], None, details.get("Message", ""))
    meta = body.pop("ResponseMetadata")
    return Answer(meta["HTTPStatusCode"], None, body)


def is_known(of, operation, code):
    return (code in known_codes(of, operation) or code in COMMON
            or (operation, code) in BEYOND_THE_MODEL)


def endpoint(name):
    return os.environ[name]
