//! LiveReads that go to the server itself, in the order in which they were asked for.

use crate::cache::as_cached;
use crate::feed::{self, REQUEST_TIMEOUT};
use crate::outside::Driver;
use crate::server::Server;
use crate::view::Places;
use interlock_kernel::{Address, LiveReads, Object, Outside, Place, Read};
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

fn server(places: &Places, place: Place) -> Result<&Server, String> {
    places.server(place).ok_or_else(|| format!("no API server is configured for the {place}"))
}
