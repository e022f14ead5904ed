"""Random sequences of calls to moto and to the embedded server, side by side.

Status, code and canonical body agree, or a rule below names the entry of the ledger that says why not.
"""

import json
import os
import random
import re
import sys
import urllib.request
from datetime import datetime
from reader import call, client, endpoint, is_known
import rules

OURS, THEIRS = endpoint("SERVER"), endpoint("MOTO")
SEED, SEQUENCES = int(os.environ["SEED"]), int(os.environ["SEQUENCES"])
CALLS = 40
ACCOUNT = "123456789012"
ours, theirs = client("iam", OURS), client("iam", THEIRS)
ledger = open(os.environ["LEDGER"]).read()
used, examples = {}, {}


def statement(action, effect="Allow", **more):
    return json.dumps({"Version": "2012-10-17", "Statement": [
        {"Effect": effect, "Action": action, "Resource": "*", **more}]})


DOCUMENTS = [statement("s3:GetObject"), statement(["s3:Get*", "s3:List*"]), statement("iam:*", "Deny"),
             statement("s3:PutObject", Condition={"StringEquals": {"aws:PrincipalTag/a": ["x", "y"]}})]
BAD_DOCUMENTS = ["", "{", "[]", "{}", statement("s3:GetObject").replace("2012-10-17", "2013-01-01"),
                 statement("nothing"), statement("s3:GetObject", "Maybe"),
                 statement("s3:GetObject").replace("Resource", "Rezource"),
                 statement("s3:GetObject").replace('"*"', '"bucket"')]


def trust(issuer, subject):
    return json.dumps({"Version": "2012-10-17", "Statement": [{
        "Sid": "Epoch1", "Effect": "Allow", "Action": "sts:AssumeRoleWithWebIdentity",
        "Principal": {"Federated": f"arn:aws:iam::{ACCOUNT}:oidc-provider/{issuer}"},
        "Condition": {"StringEquals": {f"{issuer}:sub": subject, f"{issuer}:aud": "sts.amazonaws.com"}}}]})


TRUSTS = [trust("hub/issuers/a", "system:serviceaccount:a:b"), trust("hub/issuers/b", "x"),
          json.dumps({"Version": "2012-10-17", "Statement": [
              {"Effect": "Deny", "Principal": "*", "Action": "sts:AssumeRoleWithWebIdentity"}]})]
BAD_TRUSTS = ["", "{", "{}", DOCUMENTS[0], TRUSTS[0].replace("sts:", "s3:")]


rules.BAD_DOCUMENTS.update(BAD_DOCUMENTS)
rules.BAD_TRUSTS.update(BAD_TRUSTS)


class Sequence:
    def __init__(self, seed):
        self.random = random.Random(seed)

    def one(self, *choices):
        return self.random.choice(choices)

    def mostly(self, good, bad):
        return self.random.choice(good if self.random.random() < 0.93 else bad)

    def role(self):
        return self.mostly(["r1", "r2", "r3"], ["none", "R1", "a b", "x" * 65])

    def policy_name(self):
        return self.mostly(["p1", "p2", "p3"], ["P1", "a/b", "x" * 129])

    def policy(self):
        path = self.one("/", "/", "/", "/a/")
        good = [f"arn:aws:iam::{ACCOUNT}:policy{path}{name}" for name in ("p1", "p2", "p3")]
        return self.mostly(good, [f"arn:aws:iam::{ACCOUNT}:policy/none", "this-is-not-an-arn-at-all"])

    def version(self):
        return self.mostly([f"v{number}" for number in range(1, 7)], ["v99", "one"])

    def document(self):
        return self.mostly(DOCUMENTS, BAD_DOCUMENTS)

    def trust(self):
        return self.mostly(TRUSTS, BAD_TRUSTS)

    def tags(self):
        keys = self.random.sample(["a", "b", "interlock.dev/owner", "empty"], self.random.randint(0, 3))
        tags = [{"Key": key, "Value": self.one("", "x", "role/ns/name")} for key in keys]
        bad = [[{"Key": "k", "Value": "1"}, {"Key": "K", "Value": "2"}],
               [{"Key": "aws:x", "Value": "1"}], [{"Key": "a*", "Value": "1"}],
               [{"Key": f"k{number}", "Value": ""} for number in range(51)]]
        return self.mostly([tags], bad)

    def url(self):
        return self.mostly([f"https://hub/issuers/{name}" for name in "ab"], ["hub", "ftp://hub"])

    def provider(self):
        good = [f"arn:aws:iam::{ACCOUNT}:oidc-provider/hub/issuers/{name}" for name in "ab"]
        return self.mostly(good, [f"arn:aws:iam::{ACCOUNT}:oidc-provider/none"])

    def next(self):
        """A call and its parameters."""
        role, policy = {"RoleName": self.role()}, {"PolicyArn": self.policy()}
        inline = {**role, "PolicyName": self.mostly(["i1", "i2"], ["none", "a b"])}
        return self.one(
            ("CreateRole", {**role, "AssumeRolePolicyDocument": self.trust(), "Tags": self.tags(),
                            "Path": self.mostly(["/", "/a/"], ["a"]), "Description": self.one("", "d<&>"),
                            "MaxSessionDuration": self.mostly([3600, 7200], [60, 50000]),
                            **self.one({}, {}, {"PermissionsBoundary": self.policy()})}),
            ("CreateRole", {**role, "AssumeRolePolicyDocument": TRUSTS[0]}),
            ("GetRole", role), ("DeleteRole", role),
            ("ListRoles", {"PathPrefix": self.one("/", "/a/")}),
            ("UpdateAssumeRolePolicy", {**role, "PolicyDocument": self.trust()}),
            ("PutRolePermissionsBoundary", {**role, "PermissionsBoundary": self.policy()}),
            ("TagRole", {**role, "Tags": self.tags()}),
            ("UntagRole", {**role, "TagKeys": [self.one("a", "b", "none")]}),
            ("ListRoleTags", role),
            ("AttachRolePolicy", {**role, **policy}), ("AttachRolePolicy", {**role, **policy}),
            ("DetachRolePolicy", {**role, **policy}), ("ListAttachedRolePolicies", role),
            ("PutRolePolicy", {**inline, "PolicyDocument": self.document()}),
            ("GetRolePolicy", inline), ("DeleteRolePolicy", inline), ("ListRolePolicies", role),
            ("ListInstanceProfilesForRole", role),
            ("CreatePolicy", {"PolicyName": self.policy_name(), "PolicyDocument": self.document(),
                              "Path": self.one("/", "/", "/a/"), "Tags": self.tags()}),
            ("CreatePolicy", {"PolicyName": self.policy_name(), "PolicyDocument": DOCUMENTS[0]}),
            ("GetPolicy", policy), ("DeletePolicy", policy),
            ("ListPolicies", {"Scope": "Local", "OnlyAttached": self.one(True, False)}),
            ("TagPolicy", {**policy, "Tags": self.tags()}),
            ("ListEntitiesForPolicy", policy),
            ("CreatePolicyVersion", {**policy, "PolicyDocument": self.document(),
                                     "SetAsDefault": self.one(True, False)}),
            ("GetPolicyVersion", {**policy, "VersionId": self.version()}),
            ("ListPolicyVersions", policy),
            ("SetDefaultPolicyVersion", {**policy, "VersionId": self.version()}),
            ("DeletePolicyVersion", {**policy, "VersionId": self.version()}),
            ("CreateOpenIDConnectProvider", {"Url": self.url(), "ClientIDList": ["sts.amazonaws.com"],
                                             "ThumbprintList": self.mostly([[], ["0" * 40]], [["short"]]),
                                             "Tags": self.tags()}),
            ("GetOpenIDConnectProvider", {"OpenIDConnectProviderArn": self.provider()}),
            ("ListOpenIDConnectProviders", {}),
            ("DeleteOpenIDConnectProvider", {"OpenIDConnectProviderArn": self.provider()}),
        )


def canonical(value, key=""):
    """A body without what must differ: ids, moments, the order of lists; empty is absent."""
    if isinstance(value, dict):
        found = {name: canonical(item, name) for name, item in value.items()}
        return {name: item for name, item in found.items() if item not in ("", [], {}, None)}
    if isinstance(value, list):
        return sorted((canonical(item) for item in value), key=lambda item: json.dumps(item, sort_keys=True))
    if isinstance(value, datetime):
        return "DATE"
    if key in ("RoleId", "PolicyId"):
        return re.sub(r"^(AROA|ANPA|A)[A-Z0-9]+$", "ID", value)
    return value


IGNORED = {"RoleLastUsed", "Marker"}


def without_ignored(body):
    if isinstance(body, dict):
        return {key: without_ignored(item) for key, item in body.items() if key not in IGNORED}
    if isinstance(body, list):
        return [without_ignored(item) for item in body]
    return body




def reset():
    urllib.request.urlopen(urllib.request.Request(f"{THEIRS}/moto-api/reset", method="POST")).read()
    for role in call(ours, "ListRoles", MaxItems=1000).body["Roles"]:
        name = {"RoleName": role["RoleName"]}
        for it in call(ours, "ListAttachedRolePolicies", **name).body["AttachedPolicies"]:
            call(ours, "DetachRolePolicy", **name, PolicyArn=it["PolicyArn"])
        for it in call(ours, "ListRolePolicies", **name).body["PolicyNames"]:
            call(ours, "DeleteRolePolicy", **name, PolicyName=it)
        call(ours, "DeleteRole", **name)
    for policy in call(ours, "ListPolicies", MaxItems=1000).body["Policies"]:
        arn = {"PolicyArn": policy["Arn"]}
        for it in call(ours, "ListPolicyVersions", **arn).body["Versions"]:
            if not it["IsDefaultVersion"]:
                call(ours, "DeletePolicyVersion", **arn, VersionId=it["VersionId"])
        call(ours, "DeletePolicy", **arn)
    for it in call(ours, "ListOpenIDConnectProviders").body["OpenIDConnectProviderList"]:
        call(ours, "DeleteOpenIDConnectProvider", OpenIDConnectProviderArn=it["Arn"])


def compare(operation, parameters):
    """What differs: None, entries of the ledger, or text; the answer; whether only one has done it."""
    one, other = call(ours, operation, **parameters), call(theirs, operation, **parameters)
    if one.code and not is_known(ours, operation, one.code):
        sys.exit(f"{operation} {parameters}: botocore does not know {one}")
    mine = without_ignored(canonical(one.body)), without_ignored(canonical(other.body))
    if (one.status, one.code) == (other.status, other.code) and mine[0] == mine[1]:
        return None, one, False
    entries = rules.explain(operation, parameters, one, other, mine)
    if entries is None:
        return f"{operation} {json.dumps(parameters)}\n  ours  {one.status} {one.code or mine[0]} {one.message}\n" \
               f"  moto  {other.status} {other.code or mine[1]} {other.message}", one, \
            (one.code is None) != (other.code is None)
    for entry in entries:
        if f"| {entry} |" not in ledger:
            sys.exit(f"{entry} is not in the ledger")
        used[entry] = used.get(entry, 0) + 1
        examples.setdefault(entry, set()).add(f"{operation}: {one.code} {other.code}")
    return " ".join(entries), one, (one.code is None) != (other.code is None)


agreed, unexplained = {}, []
total = 0
for number in range(SEQUENCES):
    reset()
    sequence = Sequence(SEED * 1000 + number)
    for _ in range(CALLS):
        operation, parameters = sequence.next()
        total += 1
        difference, answer, only_one_did = compare(operation, parameters)
        if difference is None:
            kind = agreed.setdefault(operation, set())
            kind.add(answer.code or "done")
            continue
        if "\n" in difference:
            unexplained.append(f"seed {SEED}, sequence {number}: {difference}")
        # What one has done and the other has not would make everything after it differ.
        if only_one_did and not operation.startswith(("Get", "List")):
            break
    if len(unexplained) > 30:
        break
print(f"{total} calls in {SEQUENCES} sequences; agreed on {sum(map(len, agreed.values()))} kinds of answers "
      f"of {len(agreed)} calls; differences by entry of the ledger: {dict(sorted(used.items()))}")
if "EXAMPLES" in os.environ:
    for entry, seen in sorted(examples.items()):
        print(f"  {entry}  {'; '.join(sorted(seen))}")
if unexplained:
    for text in unexplained:
        print(text)
    sys.exit(f"{len(unexplained)} differences that the ledger does not explain")
