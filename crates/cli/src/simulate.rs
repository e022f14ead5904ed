//! `interlock simulate`

use crate::catalog::Subject;
use crate::output::{self, Format, ProgressLine, say, say_json, stop_on_interrupt};
use interlock_checker::render::{self, thousands};
use interlock_checker::{Walked, Walks};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

/// What to walk, and how.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    subject: Subject,
    /// Number of walks
    #[arg(long, value_name = "N", default_value_t = 100_000)]
    traces: u64,
    /// Maximum number of steps in each walk
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    depth: u32,
    /// Number of threads [default: all cores]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    workers: Option<u16>,
    /// Seed of the random numbers; the same seed gives the same walks
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Print the trace of each violation
    #[arg(long)]
    trace: bool,
    /// Draw the first violation as a sequence diagram (a self-contained HTML file)
    #[arg(long, value_name = "FILE")]
    diagram: Option<PathBuf>,
    /// Output format
    #[arg(short, long, value_enum, default_value = "text")]
    output: Format,
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let entry = args.subject.find()?;
    let model = args.subject.build(&entry)?;
    let line = ProgressLine::default();
    let mut walks = Walks {
        traces: args.traces,
        depth: args.depth,
        seed: args.seed,
        stop: stop_on_interrupt()?,
        ..Walks::default()
    };
    if let Some(workers) = args.workers {
        walks.workers = usize::from(workers);
    }
    if ProgressLine::is_wanted() {
        let (line, name, traces) = (line.clone(), entry.name, args.traces);
        walks.progress = Some(Arc::new(move |done, steps, elapsed| {
            let rate = steps as f64 / elapsed.as_secs_f64().max(1e-9) / 1e6;
            let left = elapsed.as_secs_f64() * (traces - done) as f64 / done.max(1) as f64;
            line.show(&format!(
                "{name}: {} of {} walks, {rate:.1} M steps/s, {left:.0} s left",
                thousands(done),
                thousands(traces)
            ));
        }));
    }
    let walked = model.simulate(entry.name, &walks);
    line.clear();
    if let (Some(path), Some(first)) = (&args.diagram, walked.violations.first()) {
        let title = format!("{} {}: {}", walked.model, walked.size, first.name);
        output::write_file(path, &render::diagram(&title, &first.trace))?;
    }
    match args.output {
        Format::Json => say_json(&walked)?,
        Format::Text => say(&told(&walked, args.trace))?,
    }
    Ok(match (walked.complete, walked.violations.is_empty()) {
        (false, _) => ExitCode::from(130),
        (true, true) => ExitCode::SUCCESS,
        (true, false) => ExitCode::from(1),
    })
}

fn told(walked: &Walked, trace: bool) -> String {
    let mut text = format!(
        "{} {}\n{} walks of at most {} steps, seed {}: {} steps in {:.1} s, {:.2} M steps/s, {} walks/s\n",
        walked.model,
        walked.size,
        thousands(walked.traces),
        walked.depth,
        walked.seed,
        thousands(walked.steps),
        walked.seconds,
        walked.steps_per_second / 1e6,
        thousands(walked.traces_per_second as u64),
    );
    if !walked.complete {
        text += "interrupted: these are the results so far\n";
    }
    for violation in &walked.violations {
        text += &format!(
            "violated: {} ({}) on walk {} after {} steps, {} of them matter\n",
            violation.name,
            violation.sentence,
            thousands(violation.trace_number),
            violation.walked_steps,
            violation.steps,
        );
        if trace {
            text += "\n";
            text += &render::story(&violation.name, &violation.trace);
        }
    }
    if walked.violations.is_empty() {
        text += "no promise was violated on these walks; other walks may violate one\n";
        text += &format!("next: interlock check {}\n", walked.model);
    } else if !trace {
        text += &format!("next: interlock simulate {} --trace\n", walked.model);
    }
    text
}
