//! OpenID Connect providers: issuers whose tokens STS accepts.

use super::context::{Answer, Context, Decided};
use super::fault::Fault;
use super::limits;
use super::roles::write_tags;
use super::state::{Change, Provider};
use crate::arn::{Arn, without_scheme};
use crate::clock::iso8601;
use crate::http::Endpoint;

/// Audiences of one provider.
const AUDIENCES: usize = 100;
/// Thumbprints of one provider.
const THUMBPRINTS: usize = 5;

fn url<'a>(context: &Context<'a>) -> Result<&'a str, Fault> {
    let url = context.parameters.need("Url")?;
    if url.is_empty() || url.len() > 255 {
        return Err(Fault::validation("Url", "Member must have length between 1 and 255"));
    }
    let is_good = match Endpoint::of(url, false) {
        Ok(_) if url.contains(['?', '#']) => false,
        Ok(_) => url.starts_with("https://") || context.http_issuers,
        Err(_) => false,
    };
    if is_good {
        return Ok(url.trim_end_matches('/'));
    }
    Err(Fault::new(400, "ValidationError", "Invalid Open ID Connect Provider URL"))
}

pub(super) fn create(context: &Context<'_>) -> Decided {
    let url = url(context)?;
    let audiences = context.parameters.list("ClientIDList");
    if audiences.len() > AUDIENCES {
        return Err(Fault::limit("ClientIdsPerOpenIdConnectProvider", AUDIENCES));
    }
    if audiences.iter().any(|it| it.is_empty() || it.len() > 255) {
        let rule = "Member must have length between 1 and 255";
        return Err(Fault::validation("ClientIDList", rule));
    }
    let thumbprints = context.parameters.list("ThumbprintList");
    if thumbprints.len() > THUMBPRINTS {
        return Err(Fault::invalid_input("Thumbprint list must contain fewer than 5 entries."));
    }
    let is_print = |it: &String| it.len() == 40 && it.bytes().all(|it| it.is_ascii_alphanumeric());
    if !thumbprints.iter().all(is_print) {
        let rule = "Member must have length between 40 and 40";
        return Err(Fault::validation("ThumbprintList", rule));
    }
    let tags = context.parameters.tags()?;
    if context.state.provider(without_scheme(url)).is_some() {
        return Err(Fault::already_exists(format!("Provider with url {url} already exists.")));
    }
    if context.state.providers().count() >= limits::PROVIDERS {
        return Err(Fault::limit("OpenIdConnectProvidersPerAccount", limits::PROVIDERS));
    }
    let created_seconds = context.now_seconds;
    let provider = Provider { url: url.to_owned(), audiences, thumbprints, created_seconds, tags };
    let arn = Arn::provider(context.account, url).to_string();
    let answer = Answer::says(|writer| {
        writer.text("OpenIDConnectProviderArn", &arn);
        if !provider.tags.is_empty() {
            write_tags(&provider.tags, writer);
        }
    });
    Ok(answer.with(Change::Provider(provider)))
}

/// The ARN that a call names.
fn named<'a>(context: &Context<'a>) -> Result<&'a str, Fault> {
    let arn = context.parameters.need("OpenIDConnectProviderArn")?;
    let parsed: Result<Arn, _> = arn.parse();
    if !parsed.is_ok_and(|arn| arn.resource.starts_with("oidc-provider/")) {
        return Err(Fault::invalid_input(format!("Invalid ARN: {arn}")));
    }
    Ok(arn)
}

/// The provider that a call is about.
fn existing<'a>(context: &Context<'a>) -> Result<&'a Provider, Fault> {
    let arn = named(context)?;
    context.state.provider_by_arn(arn).ok_or_else(|| {
        Fault::no_such_entity(format!("OpenIDConnect Provider not found for arn {arn}"))
    })
}

pub(super) fn get(context: &Context<'_>) -> Decided {
    let provider = existing(context)?;
    Ok(Answer::says(|writer| {
        writer
            .text("Url", without_scheme(&provider.url))
            .list("ClientIDList", &provider.audiences, |member, audience| {
                member.raw_text(audience);
            })
            .list("ThumbprintList", &provider.thumbprints, |member, print| {
                member.raw_text(print);
            })
            .text("CreateDate", &iso8601(provider.created_seconds));
        write_tags(&provider.tags, writer);
    }))
}

pub(super) fn list(context: &Context<'_>) -> Decided {
    Ok(Answer::says(|writer| {
        writer.list("OpenIDConnectProviderList", context.state.providers(), |member, provider| {
            let arn = Arn::provider(context.account, &provider.url).to_string();
            member.text("Arn", &arn);
        });
    }))
}

/// Deleting what is not there is done already, as AWS documents it for this call alone.
pub(super) fn delete(context: &Context<'_>) -> Decided {
    match context.state.provider_by_arn(named(context)?) {
        Some(provider) => {
            let name = without_scheme(&provider.url).to_owned();
            Ok(Answer::done(Change::NoProvider(name)))
        }
        None => Ok(Answer::nothing()),
    }
}

pub(super) fn tag(context: &Context<'_>) -> Decided {
    let more = context.parameters.tags()?;
    let provider = existing(context)?;
    let tags = limits::with_tags(&provider.tags, more)?;
    Ok(Answer::done(Change::Provider(Provider { tags, ..provider.clone() })))
}
