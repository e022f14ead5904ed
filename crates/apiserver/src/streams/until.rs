//! Until when a stream may last: it ends with the right to it, and with the server.

use crate::server::{Server, stopped};
use crate::standing::Standing;
use std::time::Duration;

/// How often it is checked whether the client would still be let in.
const RECHECK: Duration = Duration::from_secs(60);

/// Waits until a stream must end.
pub(super) async fn it_must_end(server: &Server, standing: &Standing) {
    let mut stopping = server.stopping();
    loop {
        tokio::select! {
            () = stopped(&mut stopping) => return,
            () = tokio::time::sleep(RECHECK) => {}
        }
        match server.still_stands(standing).await {
            Err(status) if matches!(status.code, 401 | 403) => return,
            // A store that does not answer is nobody's fault: it is asked again in a while.
            Ok(()) | Err(_) => {}
        }
    }
}
