//! Managed policies and their versions.

use super::context::{Answer, Context, Decided, Page};
use super::fault::Fault;
use super::limits;
use super::roles::{encoded, is_arn, write_tags};
use super::state::{Change, Policy, Version};
use crate::clock::iso8601;
use crate::document::Kind;
use crate::xml::Writer;
use std::collections::BTreeMap;

/// What lists say of a policy.
fn write_brief(context: &Context<'_>, policy: &Policy, writer: &mut Writer) {
    let arn = policy.arn(context.account);
    writer
        .text("PolicyName", &policy.name)
        .text("PolicyId", &policy.id)
        .text("Arn", &arn)
        .text("Path", &policy.path)
        .text("DefaultVersionId", &format!("v{}", policy.default))
        .text("AttachmentCount", &context.state.attached_to(&arn).count().to_string())
        .text("PermissionsBoundaryUsageCount", &context.state.bounded_by(&arn).count().to_string())
        .text("IsAttachable", "true")
        .text("CreateDate", &iso8601(policy.created_seconds))
        .text("UpdateDate", &iso8601(policy.updated_seconds));
}

fn write_policy(context: &Context<'_>, policy: &Policy, writer: &mut Writer) {
    writer.within("Policy", |writer| {
        write_brief(context, policy, writer);
        writer.optional("Description", policy.description.as_deref());
        write_tags(&policy.tags, writer);
    });
}

/// The policy that a call is about.
fn named<'a>(context: &Context<'a>) -> Result<&'a Policy, Fault> {
    let arn = context.parameters.need("PolicyArn")?;
    is_arn(arn)?;
    context.state.policy(arn)
}

/// The policy and the number of the version that a call is about. What the number is like is checked
/// first, as everything that needs no state.
fn numbered<'a>(context: &Context<'a>) -> Result<(&'a Policy, u64), Fault> {
    let id = context.parameters.need("VersionId")?;
    let number = id.strip_prefix('v').and_then(|number| number.parse::<u64>().ok());
    let Some(number) = number else {
        let rule =
            "Member must satisfy regular expression pattern: v[1-9][0-9]*(\\.[A-Za-z0-9-]*)?";
        return Err(Fault::validation("VersionId", rule));
    };
    let policy = named(context)?;
    if !policy.versions.contains_key(&number) {
        let arn = policy.arn(context.account);
        let message = format!("Policy {arn} version {id} does not exist or is not attachable.");
        return Err(Fault::no_such_entity(message));
    }
    Ok((policy, number))
}

pub(super) fn create(context: &Context<'_>) -> Decided {
    let parameters = context.parameters;
    let name = limits::name("PolicyName", parameters.need("PolicyName")?, 128)?;
    let path = limits::path(parameters.get("Path"))?;
    let document = limits::document(parameters.need("PolicyDocument")?, Kind::Permissions)?;
    let description = limits::description(parameters.get("Description"))?;
    let tags = parameters.tags()?;
    if context.state.has_policy(name) {
        let message =
            format!("A policy called {name} already exists. Duplicate names are not allowed.");
        return Err(Fault::already_exists(message));
    }
    if context.state.policies().count() >= limits::POLICIES {
        return Err(Fault::limit("PoliciesPerAccount", limits::POLICIES));
    }
    let created_seconds = context.now_seconds;
    let policy = Policy {
        name: name.to_owned(),
        path: path.to_owned(),
        id: (context.fresh)("ANPA"),
        created_seconds,
        updated_seconds: created_seconds,
        description,
        tags,
        versions: BTreeMap::from([(1, Version { document, created_seconds })]),
        default: 1,
        next: 2,
    };
    let answer = Answer::says(|writer| write_policy(context, &policy, writer));
    Ok(answer.with(Change::Policy(policy)))
}

pub(super) fn get(context: &Context<'_>) -> Decided {
    let policy = named(context)?;
    Ok(Answer::says(|writer| write_policy(context, policy, writer)))
}

pub(super) fn list(context: &Context<'_>) -> Decided {
    let parameters = context.parameters;
    let prefix = parameters.get("PathPrefix").unwrap_or("/");
    let scope = parameters.get("Scope").unwrap_or("All");
    if !["All", "AWS", "Local"].contains(&scope) {
        let rule = "Member must satisfy enum value set: [All, AWS, Local]";
        return Err(Fault::validation("Scope", rule));
    }
    let is_attached =
        |policy: &Policy| context.state.attached_to(&policy.arn(context.account)).next().is_some();
    let is_listed = |policy: &&Policy| {
        scope != "AWS"
            && policy.path.starts_with(prefix)
            && (!parameters.is_true("OnlyAttached") || is_attached(policy))
    };
    let policies = context.state.policies().filter(is_listed);
    let page = Page::of(context, policies.map(|it| (it.name.to_ascii_lowercase(), it)))?;
    Ok(Answer::says(|writer| {
        page.write("Policies", writer, |member, policy| write_brief(context, policy, member));
    }))
}

pub(super) fn delete(context: &Context<'_>) -> Decided {
    let policy = named(context)?;
    let arn = policy.arn(context.account);
    let mut users = context.state.attached_to(&arn).chain(context.state.bounded_by(&arn));
    if users.next().is_some() {
        return Err(Fault::delete_conflict("Cannot delete a policy attached to entities."));
    }
    if policy.versions.len() > 1 {
        return Err(Fault::delete_conflict(
            "This policy has more than one version. Before you delete a policy, you must delete the \
             policy's versions. The default version is deleted with the policy.",
        ));
    }
    Ok(Answer::done(Change::NoPolicy(policy.name.clone())))
}

pub(super) fn tag(context: &Context<'_>) -> Decided {
    let more = context.parameters.tags()?;
    let policy = named(context)?;
    let tags = limits::with_tags(&policy.tags, more)?;
    Ok(Answer::done(Change::Policy(Policy { tags, ..policy.clone() })))
}

pub(super) fn untag(context: &Context<'_>) -> Decided {
    let policy = named(context)?;
    let keys = context.parameters.list("TagKeys");
    let mut tags = policy.tags.clone();
    tags.retain(|key, _| !keys.iter().any(|it| it.to_lowercase() == key.to_lowercase()));
    Ok(Answer::done(Change::Policy(Policy { tags, ..policy.clone() })))
}

pub(super) fn list_tags(context: &Context<'_>) -> Decided {
    let policy = named(context)?;
    let tags = policy.tags.iter().map(|(key, value)| (key.clone(), (key, value)));
    let page = Page::of(context, tags)?;
    Ok(Answer::says(|writer| {
        page.write("Tags", writer, |member, (key, value)| {
            member.text("Key", key).text("Value", value);
        });
    }))
}

pub(super) fn list_entities(context: &Context<'_>) -> Decided {
    let arn = named(context)?.arn(context.account);
    let parameters = context.parameters;
    let prefix = parameters.get("PathPrefix").unwrap_or("/");
    let is_asked = matches!(parameters.get("EntityFilter"), None | Some("Role"));
    let usage = parameters.get("PolicyUsageFilter");
    let roles = context.state.roles().filter(|role| {
        let is_attached = role.attached.contains(&arn) && usage != Some("PermissionsBoundary");
        let is_bound =
            role.boundary.as_deref() == Some(&*arn) && usage != Some("PermissionsPolicy");
        is_asked && role.path.starts_with(prefix) && (is_attached || is_bound)
    });
    let page = Page::of(context, roles.map(|role| (role.name.to_ascii_lowercase(), role)))?;
    Ok(Answer::says(|writer| {
        writer.within("PolicyGroups", |_| {}).within("PolicyUsers", |_| {});
        page.write("PolicyRoles", writer, |member, role| {
            member.text("RoleName", &role.name).text("RoleId", &role.id);
        });
    }))
}

fn write_version(policy: &Policy, number: u64, writer: &mut Writer) {
    let created = policy.versions.get(&number).map(|version| version.created_seconds);
    writer
        .text("VersionId", &format!("v{number}"))
        .text("IsDefaultVersion", if number == policy.default { "true" } else { "false" })
        .text("CreateDate", &iso8601(created.unwrap_or_default()));
}

pub(super) fn create_version(context: &Context<'_>) -> Decided {
    let document = limits::document(context.parameters.need("PolicyDocument")?, Kind::Permissions);
    let mut policy = named(context)?.clone();
    let document = document?;
    if policy.versions.len() >= limits::VERSIONS {
        return Err(Fault::new(
            409,
            "LimitExceeded",
            "A managed policy can have up to 5 versions. Before you create a new version, you must \
             delete an existing version.",
        ));
    }
    let number = policy.next;
    policy.next += 1;
    let created_seconds = context.now_seconds;
    policy.versions.insert(number, Version { document, created_seconds });
    if context.parameters.is_true("SetAsDefault") {
        policy.default = number;
    }
    policy.updated_seconds = context.now_seconds;
    let answer = Answer::says(|writer| {
        writer.within("PolicyVersion", |writer| write_version(&policy, number, writer));
    });
    Ok(answer.with(Change::Policy(policy)))
}

pub(super) fn get_version(context: &Context<'_>) -> Decided {
    let (policy, number) = numbered(context)?;
    let document = policy.versions.get(&number).map(|version| version.document.as_str());
    Ok(Answer::says(|writer| {
        writer.within("PolicyVersion", |writer| {
            writer.text("Document", &encoded(document.unwrap_or_default()));
            write_version(policy, number, writer);
        });
    }))
}

/// The newest first.
pub(super) fn list_versions(context: &Context<'_>) -> Decided {
    let policy = named(context)?;
    let key = |number: &u64| (format!("{:020}", u64::MAX - number), *number);
    let page = Page::of(context, policy.versions.keys().map(key))?;
    Ok(Answer::says(|writer| {
        page.write("Versions", writer, |member, number| write_version(policy, number, member));
    }))
}

pub(super) fn set_default_version(context: &Context<'_>) -> Decided {
    let (policy, default) = numbered(context)?;
    let updated_seconds = context.now_seconds;
    Ok(Answer::done(Change::Policy(Policy { default, updated_seconds, ..policy.clone() })))
}

pub(super) fn delete_version(context: &Context<'_>) -> Decided {
    let (policy, number) = numbered(context)?;
    if number == policy.default {
        return Err(Fault::delete_conflict("Cannot delete the default version of a policy."));
    }
    let mut policy = policy.clone();
    policy.versions.remove(&number);
    Ok(Answer::done(Change::Policy(policy)))
}
