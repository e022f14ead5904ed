//! LiveReads that go to the server itself, in the order in which they were asked for.

use crate::cache::as_cached;
use crate::feed::{self, REQUEST_TIMEOUT};
use crate::outside::Driver;
use crate::server::Server;
use crate::view::Places;
use crate::write;
use interlock_kernel::{Address, DryRun, LiveReads, Object, Outside, Place, Read, Refusal};
use kube::core::Status;
use tokio::time::timeout;

/// Adds to what was seen. Each read begins after the one before was answered, and each is a quorum
/// read: it shows all that was acknowledged before it began.
pub async fn read_live<O: Outside>(
    places: &Places,
    driver: &impl Driver<O>,
    reads: Vec<Read<O>>,
    live_reads: &mut LiveReads<O>,
) -> Result<(), String> {
    for read in reads {
        match read {
            Read::Object(address) => {
                let seen = get(server(places, address.place)?, &address).await?;
                live_reads.objects.insert(address, seen);
            }
            Read::List { place, kind, namespace } => {
                let api = server(places, place)?.api(&kind, namespace.as_deref());
                let (seen, _) = feed::list(&api, &kind).await?;
                live_reads.lists.insert((place, kind, namespace), seen);
            }
            Read::Selected { place, kind, selector } => {
                let api = server(places, place)?.api(&kind, None);
                let (seen, _) = feed::list_selected(&api, &kind, &selector).await?;
                live_reads.selected.insert((place, kind, selector), seen);
            }
            Read::DryRun(dry_run) => {
                let answer = dry_run_on(server(places, dry_run.address.place)?, &dry_run).await?;
                live_reads.dry_runs.insert(*dry_run, answer);
            }
            Read::Ask(question) => {
                let answer = driver.ask(question.clone()).await?;
                live_reads.answers.insert(question, answer);
            }
        }
    }
    Ok(())
}

/// One object as the server itself has it; None: the server says that there is none.
pub(crate) async fn get(server: &Server, address: &Address) -> Result<Option<Object>, String> {
    let api = server.api_of(address);
    match timeout(REQUEST_TIMEOUT, api.get_opt(&address.name.name)).await {
        Ok(Ok(object)) => Ok(object.map(|object| as_cached(&address.kind, object))),
        Ok(Err(error)) => Err(error.to_string()),
        Err(_) => Err("the server did not answer in time".to_owned()),
    }
}

/// What the server would make of an apply. A refusal is an answer; that none came, or that the server has too
/// much to do, is none.
async fn dry_run_on(server: &Server, asked: &DryRun) -> Result<Result<Object, Refusal>, String> {
    match write::dry_run(server, asked).await {
        Ok(object) => Ok(Ok(as_cached(&asked.address.kind, object))),
        Err(kube::Error::Api(status)) if is_refusal(&status) => Ok(Err(refusal(*status))),
        Err(error) => Err(error.to_string()),
    }
}

/// How an API server begins its answer about an applied object with a field that its schema does not have, or of
/// another type than there. The answer has code 500 and no reason, and stays the same however often it is asked.
const NOT_IN_SCHEMA: &str = "failed to create typed patch object";

fn is_not_in_schema(status: &Status) -> bool {
    status.code == 500 && status.message.starts_with(NOT_IN_SCHEMA)
}

/// Whether an answer is about the object, and not about the server.
fn is_refusal(status: &Status) -> bool {
    let is_the_servers = !(400..500).contains(&status.code) || status.code == 429;
    !is_the_servers || is_not_in_schema(status)
}

fn refusal(status: Status) -> Refusal {
    if is_not_in_schema(&status) {
        let reason = "Invalid".to_owned();
        return Refusal { code: 422, reason, message: status.message };
    }
    let is_owned = write::is_of_another_manager(&status);
    let Status { code, reason, message, .. } = status;
    // The server has one word for both.
    let reason = if is_owned { Refusal::FIELD_OWNED.to_owned() } else { reason };
    Refusal { code, reason, message }
}

fn server(places: &Places, place: Place) -> Result<&Server, String> {
    places.server(place).ok_or_else(|| format!("no API server is configured for the {place}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn answer(code: u16, reason: &str, message: &str) -> Status {
        let answer = json!({"code": code, "reason": reason, "message": message});
        serde_json::from_value(answer).expect("it is a Status")
    }

    #[test]
    fn a_field_that_the_schema_does_not_have_is_a_refusal_and_a_server_that_fails_gives_none() {
        let words = "failed to create typed patch object (default/a; /v1, Kind=ConfigMap): \
                     .dates: field not declared in schema";
        let unknown = answer(500, "", words);
        assert!(is_refusal(&unknown));
        let refusal = refusal(unknown);
        assert_eq!((refusal.code, refusal.reason.as_str()), (422, "Invalid"));
        assert_eq!(refusal.message, words);
        assert!(is_refusal(&answer(422, "Invalid", "spec.replicas: Invalid value")));
        for (code, reason) in [(429, "TooManyRequests"), (500, "InternalError"), (503, "")] {
            assert!(!is_refusal(&answer(code, reason, "the server is busy")), "{code}");
        }
    }
}
