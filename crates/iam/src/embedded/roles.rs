//! Roles: made, read, changed, deleted.

use super::context::{Answer, Context, Decided, Page};
use super::fault::Fault;
use super::limits;
use super::state::{Change, Role};
use crate::client::Tags;
use crate::clock::iso8601;
use crate::document::Kind;
use crate::xml::Writer;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

/// What AWS leaves as it is in a document: RFC 3986's unreserved characters.
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');

/// A document as answers have it.
pub(super) fn encoded(document: &str) -> String {
    utf8_percent_encode(document, RESERVED).to_string()
}

pub(super) fn write_tags(tags: &Tags, writer: &mut Writer) {
    writer.list("Tags", tags, |member, (key, value)| {
        member.text("Key", key).text("Value", value);
    });
}

/// What lists say of a role.
fn write_brief(role: &Role, account: &str, writer: &mut Writer) {
    writer
        .text("Path", &role.path)
        .text("RoleName", &role.name)
        .text("RoleId", &role.id)
        .text("Arn", &role.arn(account))
        .text("CreateDate", &iso8601(role.created_seconds))
        .text("AssumeRolePolicyDocument", &encoded(&role.trust))
        .optional("Description", role.description.as_deref())
        .text("MaxSessionDuration", &role.most_session_seconds.to_string());
}

/// All of a role.
fn write_role(role: &Role, account: &str, writer: &mut Writer) {
    writer.within("Role", |writer| {
        write_brief(role, account, writer);
        if let Some(boundary) = &role.boundary {
            writer.within("PermissionsBoundary", |writer| {
                writer
                    .text("PermissionsBoundaryType", "PermissionsBoundaryPolicy")
                    .text("PermissionsBoundaryArn", boundary);
            });
        }
        if !role.tags.is_empty() {
            write_tags(&role.tags, writer);
        }
    });
}

/// The name of a role in a call.
pub(super) fn named<'a>(context: &Context<'a>) -> Result<&'a str, Fault> {
    limits::name("RoleName", context.parameters.need("RoleName")?, 64)
}

/// Whether a text is an ARN; whether there is such a thing is another question.
pub(super) fn is_arn(text: &str) -> Result<(), Fault> {
    match text.parse::<crate::arn::Arn>() {
        Ok(_) => Ok(()),
        Err(_) => Err(Fault::invalid_input(format!("ARN {text} is not valid."))),
    }
}

/// A boundary must be a policy that exists.
fn boundary(context: &Context<'_>) -> Result<Option<String>, Fault> {
    let Some(arn) = context.parameters.get("PermissionsBoundary") else { return Ok(None) };
    is_arn(arn)?;
    match context.state.policy_by_arn(arn) {
        Some(_) => Ok(Some(arn.to_owned())),
        None => Err(Fault::no_such_entity(format!(
            "Scope ARN: {arn} does not exist or is not attachable."
        ))),
    }
}

pub(super) fn create(context: &Context<'_>) -> Decided {
    let parameters = context.parameters;
    let name = named(context)?;
    let path = limits::path(parameters.get("Path"))?;
    let trust = limits::document(parameters.need("AssumeRolePolicyDocument")?, Kind::Trust)?;
    let description = limits::description(parameters.get("Description"))?;
    let most = parameters.number("MaxSessionDuration", limits::SESSION_SECONDS)?;
    let tags = parameters.tags()?;
    let boundary = boundary(context)?;
    if context.state.has_role(name) {
        return Err(Fault::already_exists(format!("Role with name {name} already exists.")));
    }
    if context.state.roles().count() >= limits::ROLES {
        return Err(Fault::limit("RolesPerAccount", limits::ROLES));
    }
    let role = Role {
        name: name.to_owned(),
        path: path.to_owned(),
        id: (context.fresh)("AROA"),
        created_seconds: context.now_seconds,
        trust,
        description,
        most_session_seconds: most.unwrap_or(*limits::SESSION_SECONDS.start()),
        boundary,
        tags,
        attached: Vec::new(),
        inline: std::collections::BTreeMap::new(),
    };
    let answer = Answer::says(|writer| write_role(&role, context.account, writer));
    Ok(answer.with(Change::Role(role)))
}

pub(super) fn get(context: &Context<'_>) -> Decided {
    let role = context.state.role(named(context)?)?;
    Ok(Answer::says(|writer| write_role(role, context.account, writer)))
}

pub(super) fn list(context: &Context<'_>) -> Decided {
    let prefix = context.parameters.get("PathPrefix").unwrap_or("/");
    let roles = context.state.roles().filter(|role| role.path.starts_with(prefix));
    let page = Page::of(context, roles.map(|role| (role.name.to_ascii_lowercase(), role)))?;
    Ok(Answer::says(|writer| {
        page.write("Roles", writer, |member, role| write_brief(role, context.account, member));
    }))
}

pub(super) fn delete(context: &Context<'_>) -> Decided {
    let role = context.state.role(named(context)?)?;
    if !role.attached.is_empty() {
        return Err(Fault::delete_conflict(
            "Cannot delete entity, must detach all policies first.",
        ));
    }
    if !role.inline.is_empty() {
        return Err(Fault::delete_conflict("Cannot delete entity, must delete policies first."));
    }
    Ok(Answer::done(Change::NoRole(role.name.clone())))
}

pub(super) fn update(context: &Context<'_>) -> Decided {
    let mut role = context.state.role(named(context)?)?.clone();
    if let Some(description) = limits::description(context.parameters.get("Description"))? {
        role.description = Some(description);
    }
    let most = context.parameters.number("MaxSessionDuration", limits::SESSION_SECONDS)?;
    role.most_session_seconds = most.unwrap_or(role.most_session_seconds);
    // This call has a result element with nothing in it.
    Ok(Answer::says(|_| {}).with(Change::Role(role)))
}

pub(super) fn update_trust(context: &Context<'_>) -> Decided {
    let name = named(context)?;
    let trust = limits::document(context.parameters.need("PolicyDocument")?, Kind::Trust);
    let role = context.state.role(name)?;
    Ok(Answer::done(Change::Role(Role { trust: trust?, ..role.clone() })))
}

pub(super) fn put_boundary(context: &Context<'_>) -> Decided {
    let name = named(context)?;
    let arn = context.parameters.need("PermissionsBoundary")?;
    is_arn(arn)?;
    let role = context.state.role(name)?;
    Ok(Answer::done(Change::Role(Role { boundary: boundary(context)?, ..role.clone() })))
}

pub(super) fn delete_boundary(context: &Context<'_>) -> Decided {
    let role = context.state.role(named(context)?)?;
    Ok(Answer::done(Change::Role(Role { boundary: None, ..role.clone() })))
}

pub(super) fn tag(context: &Context<'_>) -> Decided {
    let name = named(context)?;
    let more = context.parameters.tags()?;
    let role = context.state.role(name)?;
    let tags = limits::with_tags(&role.tags, more)?;
    Ok(Answer::done(Change::Role(Role { tags, ..role.clone() })))
}

pub(super) fn untag(context: &Context<'_>) -> Decided {
    let role = context.state.role(named(context)?)?;
    let keys = context.parameters.list("TagKeys");
    let mut tags = role.tags.clone();
    tags.retain(|key, _| !keys.iter().any(|it| it.to_lowercase() == key.to_lowercase()));
    Ok(Answer::done(Change::Role(Role { tags, ..role.clone() })))
}

pub(super) fn list_tags(context: &Context<'_>) -> Decided {
    let role = context.state.role(named(context)?)?;
    let page = Page::of(context, role.tags.iter().map(|(key, value)| (key.clone(), (key, value))))?;
    Ok(Answer::says(|writer| {
        page.write("Tags", writer, |member, (key, value)| {
            member.text("Key", key).text("Value", value);
        });
    }))
}

/// There are no instance profiles here, so no role is in one.
pub(super) fn list_instance_profiles(context: &Context<'_>) -> Decided {
    context.state.role(named(context)?)?;
    let page = Page::of(context, std::iter::empty::<(String, ())>())?;
    Ok(Answer::says(|writer| page.write("InstanceProfiles", writer, |_, ()| {})))
}
