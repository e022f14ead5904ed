//! `interlock serve`: the API server and its store in the foreground, until it is asked to stop.

use crate::serving::{Reach, Serving, Signals, block_on};
use clap::Args as ClapArgs;
use std::process::ExitCode;

/// Options of `serve`.
#[derive(Debug, ClapArgs)]
pub(crate) struct Args {
    #[command(flatten)]
    reach: Reach,
    /// Enable debug logging
    #[arg(long, short)]
    verbose: bool,
}

/// Serves until SIGTERM or SIGINT.
pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    crate::serving::log(args.verbose);
    block_on(async {
        // Before anything is opened: whoever asks early for the end gets a proper one, too.
        let mut signals = Signals::new()?;
        let mut serving = Serving::start(&args.reach).await?;
        serving.say_ready();
        let failed = tokio::select! {
            signal = signals.next() => {
                tracing::info!(because = signal, "stopping");
                None
            }
            why = serving.fails() => Some(why),
        };
        Ok(serving.stop(failed, &mut signals).await)
    })
}
