//! What is attached to roles and what is written into them.

use super::context::{Answer, Context, Decided, Page};
use super::fault::Fault;
use super::limits;
use super::roles::{encoded, is_arn, named};
use super::state::{Change, Role};
use crate::document::size;

fn policy_arn<'a>(context: &Context<'a>) -> Result<&'a str, Fault> {
    let arn = context.parameters.need("PolicyArn")?;
    is_arn(arn)?;
    Ok(arn)
}

pub(super) fn attach(context: &Context<'_>) -> Decided {
    let arn = policy_arn(context)?;
    let role = context.state.role(named(context)?)?;
    if context.state.policy_by_arn(arn).is_none() {
        return Err(Fault::no_such_entity(format!(
            "Policy {arn} does not exist or is not attachable."
        )));
    }
    if role.attached.iter().any(|it| it == arn) {
        return Ok(Answer::nothing());
    }
    if role.attached.len() >= limits::POLICIES_PER_ROLE {
        return Err(Fault::limit("PoliciesPerRole", limits::POLICIES_PER_ROLE));
    }
    let mut role = role.clone();
    role.attached.push(arn.to_owned());
    Ok(Answer::done(Change::Role(role)))
}

pub(super) fn detach(context: &Context<'_>) -> Decided {
    let arn = policy_arn(context)?;
    let mut role = context.state.role(named(context)?)?.clone();
    let before = role.attached.len();
    role.attached.retain(|it| it != arn);
    if role.attached.len() == before {
        return Err(Fault::no_such_entity(format!("Policy {arn} was not found.")));
    }
    Ok(Answer::done(Change::Role(role)))
}

pub(super) fn list_attached(context: &Context<'_>) -> Decided {
    let role = context.state.role(named(context)?)?;
    let prefix = context.parameters.get("PathPrefix").unwrap_or("/");
    let attached = role.attached.iter().filter_map(|arn| context.state.policy_by_arn(arn));
    let attached = attached.filter(|policy| policy.path.starts_with(prefix));
    let page = Page::of(context, attached.map(|it| (it.name.to_ascii_lowercase(), it)))?;
    Ok(Answer::says(|writer| {
        page.write("AttachedPolicies", writer, |member, policy| {
            member.text("PolicyName", &policy.name).text("PolicyArn", &policy.arn(context.account));
        });
    }))
}

fn inline_name<'a>(context: &Context<'a>) -> Result<&'a str, Fault> {
    limits::name("PolicyName", context.parameters.need("PolicyName")?, 128)
}

fn inline<'a>(role: &'a Role, name: &str) -> Result<&'a String, Fault> {
    role.inline.get(name).ok_or_else(|| {
        Fault::no_such_entity(format!("The role policy with name {name} cannot be found."))
    })
}

pub(super) fn put(context: &Context<'_>) -> Decided {
    let name = inline_name(context)?;
    let mut role = context.state.role(named(context)?)?.clone();
    let document = limits::inline_document(context.parameters.need("PolicyDocument")?)?;
    role.inline.insert(name.to_owned(), document);
    if role.inline.values().map(|document| size(document)).sum::<usize>() > limits::INLINE_SIZE {
        let message = format!(
            "Maximum policy size of {} bytes exceeded for role {}",
            limits::INLINE_SIZE,
            role.name
        );
        return Err(Fault::new(409, "LimitExceeded", message));
    }
    Ok(Answer::done(Change::Role(role)))
}

pub(super) fn get(context: &Context<'_>) -> Decided {
    let role = context.state.role(named(context)?)?;
    let name = inline_name(context)?;
    let document = inline(role, name)?;
    Ok(Answer::says(|writer| {
        writer
            .text("RoleName", &role.name)
            .text("PolicyName", name)
            .text("PolicyDocument", &encoded(document));
    }))
}

pub(super) fn list(context: &Context<'_>) -> Decided {
    let role = context.state.role(named(context)?)?;
    let page = Page::of(context, role.inline.keys().map(|name| (name.clone(), name)))?;
    Ok(Answer::says(|writer| {
        page.write("PolicyNames", writer, |member, name| {
            member.raw_text(name);
        });
    }))
}

pub(super) fn delete(context: &Context<'_>) -> Decided {
    let name = inline_name(context)?;
    let mut role = context.state.role(named(context)?)?.clone();
    inline(&role, name)?;
    role.inline.remove(name);
    Ok(Answer::done(Change::Role(role)))
}
