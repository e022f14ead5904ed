"""Which entry of docs/iam-ledger.md a difference from moto belongs to. Each rule is as narrow as its entry."""

import copy
import json

REFUSED_FOR_WHAT_EXISTS = {"NoSuchEntity", "EntityAlreadyExists", "DeleteConflict", "LimitExceeded"}


def has_key(tags, wanted):
    return any(wanted(tag["Key"]) for tag in tags or [])


def policies_in(body):
    if "Policy" in body:
        yield body["Policy"]
    yield from body.get("Policies", [])


# Of two answers that are done: what moto leaves out or adds. Each changes both bodies to what they agree on.

def usage_count(operation, ours, theirs):
    theirs_by_name = {it["PolicyName"]: it for it in policies_in(theirs)}
    for it in policies_in(ours):
        other = theirs_by_name.get(it["PolicyName"], {})
        if "PermissionsBoundaryUsageCount" not in other:
            it.pop("PermissionsBoundaryUsageCount", None)
        elif operation.startswith("List"):
            other.pop("PermissionsBoundaryUsageCount")
            it.pop("PermissionsBoundaryUsageCount", None)


def no_end(operation, ours, theirs):
    if "IsTruncated" not in theirs:
        ours.pop("IsTruncated", None)


def provider_tags(operation, ours, theirs):
    if operation in ("CreateOpenIDConnectProvider", "GetOpenIDConnectProvider") and "Tags" not in theirs:
        ours.pop("Tags", None)


def versions_with_documents(operation, ours, theirs):
    if operation in ("ListPolicyVersions", "CreatePolicyVersion"):
        versions = theirs.get("Versions", []) + [theirs.get("PolicyVersion", {})]
        for it in versions:
            it.pop("Document", None)


def boundary_users(operation, ours, theirs):
    if operation == "ListEntitiesForPolicy":
        listed = [it["RoleName"] for it in theirs.get("PolicyRoles", [])]
        kept = [it for it in ours.pop("PolicyRoles", []) if it["RoleName"] in listed]
        if kept:
            ours["PolicyRoles"] = kept


def no_default(operation, ours, theirs):
    if operation not in ("ListPolicyVersions", "GetPolicyVersion"):
        return
    versions = lambda body: body.get("Versions", []) + [body.get("PolicyVersion", {})]
    if not any(it.get("IsDefaultVersion") for it in versions(theirs)):
        for it in versions(ours):
            if it.get("IsDefaultVersion"):
                it["IsDefaultVersion"] = False


def counted_twice(operation, ours, theirs):
    counts = {it["PolicyName"]: it.get("AttachmentCount", 0) for it in policies_in(ours)}
    for it in policies_in(theirs):
        if it.get("AttachmentCount", 0) > counts.get(it["PolicyName"], 0):
            it["AttachmentCount"] = counts.get(it["PolicyName"], 0)
    # Counted although it is attached no more, and so listed as attached.
    if operation == "ListPolicies":
        theirs["Policies"] = [it for it in theirs.get("Policies", []) if it["PolicyName"] in counts]
        if not theirs["Policies"]:
            theirs.pop("Policies")


BODIES = [("M1", usage_count), ("M2", no_end), ("M3", provider_tags),
          ("M4", versions_with_documents), ("M5", boundary_users),
          ("M16", no_default), ("M17", counted_twice)]


def same(one, other):
    order = lambda it: json.dumps(it, sort_keys=True)
    deep = lambda it: ({key: deep(value) for key, value in it.items()} if isinstance(it, dict)
                       else sorted(map(deep, it), key=order) if isinstance(it, list) else it)
    return deep(one) == deep(other)


def explain_bodies(operation, ours, theirs):
    ours, theirs = copy.deepcopy(ours), copy.deepcopy(theirs)
    entries = []
    for entry, rule in BODIES:
        before = json.dumps([ours, theirs], sort_keys=True)
        rule(operation, ours, theirs)
        if json.dumps([ours, theirs], sort_keys=True) != before:
            entries.append(entry)
    return entries if same(ours, theirs) else None


def faults_of(parameters, is_trust):
    """Which parameters have values that no such parameter may have, whatever exists."""
    names = [parameters.get(name) or "" for name in ("RoleName", "PolicyName")]
    tags = parameters.get("Tags") or []
    arn = parameters.get("PolicyArn") or parameters.get("PermissionsBoundary") or "arn:"
    found = {
        "bounds": any(" " in name or "/" in name or len(name) > 64 for name in names)
        or parameters.get("VersionId") == "one" or parameters.get("Path") == "a"
        or parameters.get("MaxSessionDuration") in (60, 50000)
        or parameters.get("ThumbprintList") == ["short"] or len(tags) > 50
        or has_key(tags, lambda key: "*" in key),
        "arn": not arn.startswith("arn:"),
        "url": parameters.get("Url") in ("hub", "ftp://hub"),
        "reserved": has_key(tags, lambda key: key.startswith("aws:")),
        "twice": len({tag["Key"].lower() for tag in tags}) < len(tags),
        "document": parameters.get("AssumeRolePolicyDocument") in BAD_TRUSTS
        or parameters.get("PolicyDocument") in (BAD_TRUSTS if is_trust else BAD_DOCUMENTS),
    }
    return {name for name, is_wrong in found.items() if is_wrong}


# Documents that are none; the generator says which.
BAD_DOCUMENTS, BAD_TRUSTS = set(), set()


def explain(operation, parameters, ours, theirs, bodies):
    """The entries, or None."""
    if ours.code is None and theirs.code is None:
        return explain_bodies(operation, *bodies)
    faults = faults_of(parameters, operation == "UpdateAssumeRolePolicy")
    # A call with several faults may be refused for any of them; one that is about what does not exist, too.
    about_state = {ours.code, theirs.code} & REFUSED_FOR_WHAT_EXISTS
    is_other_fault = faults and about_state and not faults & {"bounds", "arn"}
    is_other_state = {ours.code, theirs.code} == {"NoSuchEntity", "EntityAlreadyExists"}
    if ours.code and theirs.code and (len(faults) > 1 or is_other_fault or is_other_state):
        return ["M15"]
    if ours.code == "ValidationError" and "bounds" in faults:
        return ["M6"]
    if ours.code == "InvalidInput" and "arn" in faults:
        return ["M7"]
    if ours.code == "ValidationError" and "url" in faults and theirs.code is None:
        return ["M8"]
    if ours.code == "InvalidInput" and "reserved" in faults:
        return ["M9"]
    if ours.code == "MalformedPolicyDocument" and operation == "CreateRole" and theirs.code is None:
        return ["M13"]
    if faults:
        return None
    if ours.code == "NoSuchEntity" and "PermissionsBoundary" in parameters and theirs.code is None:
        return ["M10"]
    if ours.code == "EntityAlreadyExists" and operation in ("CreateRole", "CreatePolicy") and theirs.code is None:
        return ["M11"]
    if ours.code == "DeleteConflict" and operation == "DeletePolicy" and theirs.code is None:
        return ["M12"]
    if ours.code == "NoSuchEntity" and theirs.code is None and operation in (
            "ListEntitiesForPolicy", "ListInstanceProfilesForRole"):
        return ["M14"]
    return None
