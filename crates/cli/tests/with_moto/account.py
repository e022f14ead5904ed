"""What is in the account, read by boto3; or, with a word, a change that nobody asked us about.

python3 account.py              prints all of it as JSON
python3 account.py foreign      makes roles and policies of the names in NAMES, as somebody else would
python3 account.py drift        changes one thing of each role and policy with the tag of the fleet
"""

import json
import os
import random
import sys

import boto3
from botocore.config import Config

iam = boto3.client(
    "iam", endpoint_url=os.environ["SERVER"], region_name="us-east-1", aws_access_key_id="AKIAROOT",
    aws_secret_access_key="root's secret", config=Config(retries={"total_max_attempts": 1}, read_timeout=120))


def pages(call, key, **more):
    for page in iam.get_paginator(call).paginate(**more):
        yield from page[key]


def tags(of):
    return {tag["Key"]: tag["Value"] for tag in of.get("Tags", [])}


def roles():
    for listed in pages("list_roles", "Roles"):
        name = listed["RoleName"]
        role = iam.get_role(RoleName=name)["Role"]
        attached = pages("list_attached_role_policies", "AttachedPolicies", RoleName=name)
        yield {
            "name": name, "path": role["Path"], "id": role["RoleId"], "tags": tags(role),
            "trust": role["AssumeRolePolicyDocument"],
            "boundary": role.get("PermissionsBoundary", {}).get("PermissionsBoundaryArn"),
            "attached": sorted(policy["PolicyArn"] for policy in attached),
            "inline": sorted(pages("list_role_policies", "PolicyNames", RoleName=name)),
        }


def policies():
    for listed in pages("list_policies", "Policies", Scope="Local"):
        arn = listed["Arn"]
        policy = iam.get_policy(PolicyArn=arn)["Policy"]
        versions = {
            version["VersionId"]:
                iam.get_policy_version(PolicyArn=arn, VersionId=version["VersionId"])["PolicyVersion"]["Document"]
            for version in pages("list_policy_versions", "Versions", PolicyArn=arn)}
        yield {
            "name": policy["PolicyName"], "arn": arn, "id": policy["PolicyId"], "tags": tags(policy),
            "default": policy["DefaultVersionId"], "versions": versions,
        }


def providers():
    for listed in iam.list_open_id_connect_providers()["OpenIDConnectProviderList"]:
        provider = iam.get_open_id_connect_provider(OpenIDConnectProviderArn=listed["Arn"])
        yield {"arn": listed["Arn"], "url": provider["Url"], "audiences": provider["ClientIDList"], "tags": tags(provider)}


def again(read):
    """All of it; from the beginning if something was deleted between its place in a list and its turn."""
    for _ in range(50):
        try:
            return list(read())
        except iam.exceptions.NoSuchEntityException:
            continue
    sys.exit("the account changes faster than it can be read")


def change(call, **what):
    """A change that comes too late if the object was deleted or changed meanwhile."""
    try:
        call(**what)
    except (iam.exceptions.NoSuchEntityException, iam.exceptions.LimitExceededException,
            iam.exceptions.DeleteConflictException):
        pass


def document(action):
    return json.dumps({"Version": "2012-10-17", "Statement": [
        {"Effect": "Allow", "Action": action, "Resource": "arn:aws:s3:::somebody"}]})


def closed():
    return json.dumps({"Version": "2012-10-17", "Statement": [
        {"Effect": "Deny", "Action": "sts:AssumeRole", "Principal": {"AWS": "*"}}]})


def foreign():
    for name in os.environ["NAMES"].split(","):
        path = os.environ["FOLDER"]
        iam.create_role(RoleName=name, Path=path, AssumeRolePolicyDocument=closed())
        iam.create_policy(PolicyName=name, Path=path, PolicyDocument=document("s3:GetObject"))


def is_ours(thing):
    return "interlock.dev/fleet" in thing["tags"]


def drift():
    chance = random.Random(int(os.environ["SEED"]))
    for role in filter(is_ours, again(roles)):
        name = role["name"]
        chance.choice([
            lambda: change(iam.update_assume_role_policy, RoleName=name, PolicyDocument=closed()),
            lambda: [change(iam.detach_role_policy, RoleName=name, PolicyArn=arn) for arn in role["attached"]],
            lambda: change(iam.untag_role, RoleName=name, TagKeys=["interlock.dev/fleet", "interlock.dev/owner"]),
        ])()
    for policy in filter(is_ours, again(policies)):
        arn, others = policy["arn"], [v for v in policy["versions"] if v != policy["default"]]
        if len(others) == 4:
            change(iam.delete_policy_version, PolicyArn=arn, VersionId=others[0])
        chance.choice([
            lambda: change(iam.create_policy_version, PolicyArn=arn, PolicyDocument=document("*"), SetAsDefault=True),
            lambda: change(iam.untag_policy, PolicyArn=arn, TagKeys=["interlock.dev/owner"]),
        ])()


match sys.argv[1:]:
    case ["foreign"]:
        foreign()
    case ["drift"]:
        drift()
    case []:
        account = {"roles": again(roles), "policies": again(policies), "providers": again(providers)}
        json.dump(account, sys.stdout, sort_keys=True)
    case other:
        sys.exit(f"there is no {other}")
