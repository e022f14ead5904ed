"""Every call of the embedded server, made and read by boto3. Exits with 1 and says what is wrong."""

import json
import os
import sys
from reader import call, client, endpoint, is_known

SERVER = endpoint("SERVER")
iam, sts = client("iam", SERVER), client("sts", SERVER)
made, codes = set(), set()


def check(of, operation, code=None, **parameters):
    answer = call(of, operation, **parameters)
    made.add(operation)
    if answer.code != code:
        sys.exit(f"{operation} {parameters}: expected {code}, got {answer}")
    if answer.code:
        codes.add(answer.code)
        if not is_known(of, operation, answer.code):
            sys.exit(f"{operation}: botocore does not know {answer.code}")
    return answer.body


def iam_call(operation, code=None, **parameters):
    return check(iam, operation, code, **parameters)


ACCOUNT = check(sts, "GetCallerIdentity")["Account"]
ALLOW = json.dumps({"Version": "2012-10-17", "Statement": [
    {"Effect": "Allow", "Action": ["iam:GetRole"], "Resource": "*"}]})
CLOSED = json.dumps({"Version": "2012-10-17", "Statement": [
    {"Effect": "Deny", "Principal": "*", "Action": "sts:AssumeRoleWithWebIdentity"}]})
TRUST = os.environ["TRUST"]

policy = iam_call("CreatePolicy", PolicyName="p", Path="/a/", PolicyDocument=ALLOW, Description="é <&>",
                  Tags=[{"Key": "k", "Value": "v"}])["Policy"]
arn = policy["Arn"]
assert arn == f"arn:aws:iam::{ACCOUNT}:policy/a/p" and policy["PolicyId"].startswith("ANPA"), policy
assert policy["Tags"] == [{"Key": "k", "Value": "v"}], policy
iam_call("CreatePolicy", "EntityAlreadyExists", PolicyName="P", PolicyDocument=ALLOW)
iam_call("CreatePolicy", "MalformedPolicyDocument", PolicyName="x", PolicyDocument="{")
iam_call("CreatePolicy", "ValidationError", PolicyName="a b", PolicyDocument=ALLOW)
large = ALLOW.replace("iam:GetRole", "iam:" + "x" * 6144)
iam_call("CreatePolicy", "LimitExceeded", PolicyName="x", PolicyDocument=large)
iam_call("CreatePolicy", "InvalidInput", PolicyName="x", PolicyDocument=ALLOW,
         Tags=[{"Key": "k", "Value": "v"}, {"Key": "K", "Value": "v"}])
got = iam_call("GetPolicy", PolicyArn=arn)["Policy"]
assert got["Description"] == "é <&>" and got["IsAttachable"] is True and got["AttachmentCount"] == 0, got
iam_call("GetPolicy", "InvalidInput", PolicyArn="no-arn-at-all-this-is")
assert [p["Arn"] for p in iam_call("ListPolicies", Scope="Local")["Policies"]] == [arn]

role = iam_call("CreateRole", RoleName="r", Path="/a/", AssumeRolePolicyDocument=CLOSED,
                PermissionsBoundary=arn, Tags=[{"Key": "k", "Value": "v"}], MaxSessionDuration=7200)["Role"]
assert role["RoleId"].startswith("AROA") and role["Arn"] == f"arn:aws:iam::{ACCOUNT}:role/a/r", role
assert role["AssumeRolePolicyDocument"] == json.loads(CLOSED), role
assert role["PermissionsBoundary"]["PermissionsBoundaryArn"] == arn, role
iam_call("CreateRole", "EntityAlreadyExists", RoleName="R", AssumeRolePolicyDocument=CLOSED)
iam_call("CreateRole", "MalformedPolicyDocument", RoleName="x", AssumeRolePolicyDocument=ALLOW)
iam_call("CreateRole", "NoSuchEntity", RoleName="x", AssumeRolePolicyDocument=CLOSED,
         PermissionsBoundary=arn + "x")
iam_call("CreateRole", "ValidationError", RoleName="x" * 65, AssumeRolePolicyDocument=CLOSED)
got = iam_call("GetRole", RoleName="r")["Role"]
assert got == role and got["MaxSessionDuration"] == 7200, got
iam_call("GetRole", "NoSuchEntity", RoleName="none")
listed = iam_call("ListRoles", PathPrefix="/a/")["Roles"]
assert [it["RoleName"] for it in listed] == ["r"] and "Tags" not in listed[0], listed

iam_call("UpdateAssumeRolePolicy", RoleName="r", PolicyDocument=TRUST)
iam_call("UpdateAssumeRolePolicy", "NoSuchEntity", RoleName="none", PolicyDocument=TRUST)
assert iam_call("GetRole", RoleName="r")["Role"]["AssumeRolePolicyDocument"] == json.loads(TRUST)
iam_call("UpdateRole", RoleName="r", Description="d", MaxSessionDuration=3600)
assert iam_call("GetRole", RoleName="r")["Role"]["Description"] == "d"
iam_call("DeleteRolePermissionsBoundary", RoleName="r")
iam_call("DeletePolicy", PolicyArn=iam_call(
    "CreatePolicy", PolicyName="unused", PolicyDocument=ALLOW)["Policy"]["Arn"])
iam_call("PutRolePermissionsBoundary", RoleName="r", PermissionsBoundary=arn)
iam_call("DeletePolicy", "DeleteConflict", PolicyArn=arn)
iam_call("PutRolePermissionsBoundary", "NoSuchEntity", RoleName="r", PermissionsBoundary=arn + "x")
iam_call("TagRole", RoleName="r", Tags=[{"Key": "t", "Value": "1"}])
assert len(iam_call("ListRoleTags", RoleName="r")["Tags"]) == 2
iam_call("UntagRole", RoleName="r", TagKeys=["t"])
iam_call("TagPolicy", PolicyArn=arn, Tags=[{"Key": "t", "Value": "1"}])
iam_call("UntagPolicy", PolicyArn=arn, TagKeys=["t"])
assert iam_call("ListPolicyTags", PolicyArn=arn)["Tags"] == [{"Key": "k", "Value": "v"}]

iam_call("AttachRolePolicy", RoleName="r", PolicyArn=arn)
iam_call("AttachRolePolicy", "NoSuchEntity", RoleName="r", PolicyArn=arn + "x")
attached = iam_call("ListAttachedRolePolicies", RoleName="r")["AttachedPolicies"]
assert attached == [{"PolicyName": "p", "PolicyArn": arn}], attached
entities = iam_call("ListEntitiesForPolicy", PolicyArn=arn)
assert [it["RoleName"] for it in entities["PolicyRoles"]] == ["r"], entities
assert iam_call("ListInstanceProfilesForRole", RoleName="r")["InstanceProfiles"] == []
iam_call("PutRolePolicy", RoleName="r", PolicyName="i", PolicyDocument=ALLOW)
assert iam_call("GetRolePolicy", RoleName="r", PolicyName="i")["PolicyDocument"] == json.loads(ALLOW)
iam_call("GetRolePolicy", "NoSuchEntity", RoleName="r", PolicyName="none")
assert iam_call("ListRolePolicies", RoleName="r")["PolicyNames"] == ["i"]
said = iam_call("SimulatePrincipalPolicy", PolicySourceArn=role["Arn"], ActionNames=["iam:GetRole", "s3:x"])
assert [it["EvalDecision"] for it in said["EvaluationResults"]] == ["allowed", "implicitDeny"], said

for number in range(2, 6):
    version = iam_call("CreatePolicyVersion", PolicyArn=arn, PolicyDocument=ALLOW, SetAsDefault=number == 2)
    assert version["PolicyVersion"]["VersionId"] == f"v{number}", version
iam_call("CreatePolicyVersion", "LimitExceeded", PolicyArn=arn, PolicyDocument=ALLOW)
iam_call("SetDefaultPolicyVersion", PolicyArn=arn, VersionId="v1")
iam_call("DeletePolicyVersion", "DeleteConflict", PolicyArn=arn, VersionId="v1")
iam_call("DeletePolicyVersion", "NoSuchEntity", PolicyArn=arn, VersionId="v9")
got = iam_call("GetPolicyVersion", PolicyArn=arn, VersionId="v2")["PolicyVersion"]
assert got["Document"] == json.loads(ALLOW) and got["IsDefaultVersion"] is False, got
versions = iam_call("ListPolicyVersions", PolicyArn=arn)["Versions"]
assert [it["VersionId"] for it in versions] == ["v5", "v4", "v3", "v2", "v1"], versions

issuer = os.environ["ISSUER"]
provider = iam_call("CreateOpenIDConnectProvider", Url=issuer, ClientIDList=["sts.amazonaws.com"],
                    ThumbprintList=["0" * 40], Tags=[{"Key": "k", "Value": "v"}])["OpenIDConnectProviderArn"]
iam_call("CreateOpenIDConnectProvider", "EntityAlreadyExists", Url=issuer)
iam_call("CreateOpenIDConnectProvider", "ValidationError", Url="hub")
iam_call("TagOpenIDConnectProvider", OpenIDConnectProviderArn=provider, Tags=[{"Key": "t", "Value": "1"}])
got = iam_call("GetOpenIDConnectProvider", OpenIDConnectProviderArn=provider)
assert got["Url"] == issuer.split("://")[1] and got["ClientIDList"] == ["sts.amazonaws.com"], got
assert [it["Arn"] for it in iam_call("ListOpenIDConnectProviders")["OpenIDConnectProviderList"]] == [provider]


def assume(code=None, token=os.environ["TOKEN"], role=role["Arn"]):
    return check(sts, "AssumeRoleWithWebIdentity", code, RoleArn=role, RoleSessionName="boto3",
                 WebIdentityToken=token)


session = assume()["Credentials"]
credentials = session["AccessKeyId"], session["SecretAccessKey"], session["SessionToken"]
pod, pod_sts = client("iam", SERVER, credentials), client("sts", SERVER, credentials)
arn_of_session = check(pod_sts, "GetCallerIdentity")["Arn"]
assert arn_of_session.endswith(":assumed-role/r/boto3"), arn_of_session
assert check(pod, "GetRole", RoleName="r")["Role"]["RoleId"] == role["RoleId"]
check(pod, "DeleteRole", "AccessDenied", RoleName="r")
assume("InvalidIdentityToken", token=os.environ["TOKEN"][:-8] + "AAAAAAAA")
assume("AccessDenied", role=role["Arn"] + "x")
wrong = client("iam", SERVER, ("AKIAROOT", "wrong", None))
check(wrong, "GetRole", "SignatureDoesNotMatch", RoleName="r")
check(client("iam", SERVER, ("AKIA", "wrong", None)), "GetRole", "InvalidClientTokenId", RoleName="r")
broken = credentials[0], credentials[1], credentials[2][:-4] + "AAAA"
check(client("iam", SERVER, broken), "GetRole", "InvalidClientTokenId", RoleName="r")

# More than one page, read by boto3's own paginator.
for number in range(7):
    iam_call("CreateRole", RoleName=f"page-{number}", Path="/page/", AssumeRolePolicyDocument=CLOSED)
pages = list(iam.get_paginator("list_roles").paginate(
    PathPrefix="/page/", PaginationConfig={"PageSize": 3}))
assert [len(page["Roles"]) for page in pages] == [3, 3, 1], pages
for number in range(7):
    iam_call("DeleteRole", RoleName=f"page-{number}")

iam_call("DeleteRole", "DeleteConflict", RoleName="r")
iam_call("DetachRolePolicy", RoleName="r", PolicyArn=arn)
iam_call("DetachRolePolicy", "NoSuchEntity", RoleName="r", PolicyArn=arn)
iam_call("DeleteRole", "DeleteConflict", RoleName="r")
iam_call("DeleteRolePolicy", RoleName="r", PolicyName="i")
iam_call("DeleteRole", RoleName="r")
iam_call("DeleteRole", "NoSuchEntity", RoleName="r")
iam_call("DeletePolicy", "DeleteConflict", PolicyArn=arn)
for number in range(2, 6):
    iam_call("DeletePolicyVersion", PolicyArn=arn, VersionId=f"v{number}")
iam_call("DeletePolicy", PolicyArn=arn)
iam_call("DeleteOpenIDConnectProvider", OpenIDConnectProviderArn=provider)
assert iam_call("ListRoles")["Roles"] == [] and iam_call("ListPolicies")["Policies"] == []
print(f"{len(made)} calls, refused with {', '.join(sorted(codes))}")
missing = set(os.environ["ACTIONS"].split(",")) - made
if missing:
    sys.exit(f"boto3 has not made {sorted(missing)}")
