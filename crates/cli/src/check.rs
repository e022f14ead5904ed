//! `interlock check`

use crate::catalog::{Subject, entries, list};
use crate::output::{Format, ProgressLine, color, say, say_json, stop_on_interrupt, write_file};
use crate::{memory, output};
use anyhow::bail;
use interlock_checker::report::Trace;
use interlock_checker::{AnyModel, Liveness, MutantsReport, Options, Report, Verdict, render};
use serde::Serialize;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

/// What to check, and how.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(flatten)]
    subject: Subject,
    /// List all models with their sizes
    #[arg(long)]
    list: bool,
    /// Check only this promise (may be repeated)
    #[arg(long, value_name = "NAME")]
    only: Vec<String>,
    /// Stop at the first violation
    #[arg(long)]
    first: bool,
    /// Check temporal properties of large models, too
    #[arg(long, conflicts_with_all = ["symmetry", "safety"])]
    liveness: bool,
    /// Do not check temporal properties
    #[arg(long)]
    safety: bool,
    /// Explore one state of each set of symmetric states (safety only)
    #[arg(long)]
    symmetry: bool,
    /// Store free flags in every state (slower, with the same result)
    #[arg(long, conflicts_with = "symmetry")]
    plain: bool,
    /// Store 64-bit fingerprints of states: uses less memory; the report shows the probability of a collision
    #[arg(long, conflicts_with_all = ["liveness", "checkpoint"])]
    fingerprints: bool,
    /// Explore at most this many levels
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    max_depth: Option<u32>,
    /// Check every mutant of the model (one rule broken on purpose); the check must find each of them
    #[arg(long)]
    mutants: bool,
    /// Check only this mutant, and not the model itself
    #[arg(long, value_name = "NAME", conflicts_with = "mutants")]
    mutant: Option<String>,
    /// Print the shortest trace to each violation
    #[arg(long)]
    trace: bool,
    /// Draw the first violation as a sequence diagram (a self-contained HTML file)
    #[arg(long, value_name = "FILE")]
    diagram: Option<PathBuf>,
    /// Write the first violation as a TLA+ module
    #[arg(long, value_name = "FILE")]
    tla: Option<PathBuf>,
    /// Maximum memory for states, such as 8G [default: four fifths of the free memory]
    #[arg(long, value_name = "SIZE", value_parser = memory::parse)]
    max_memory: Option<usize>,
    /// Number of threads [default: all cores]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    workers: Option<u16>,
    /// File to save an unfinished exploration to
    #[arg(long, value_name = "FILE")]
    checkpoint: Option<PathBuf>,
    /// Continue from the checkpoint
    #[arg(long, requires = "checkpoint")]
    resume: bool,
    /// Output format
    #[arg(short, long, value_enum, default_value = "text")]
    output: Format,
}

const EXAMPLES: &str = "\
Without MODEL, all models are checked in their default sizes. Known violations of seed models do not
change the exit status.

Examples:
  interlock check seed/kcp-storage --size clusters=3 --trace
  interlock check seed/dpu-multi-tenant --seed-config
  interlock check spec/placement --mutants";

/// The answer for programs.
#[derive(Serialize)]
struct Answer {
    #[serde(flatten)]
    report: Option<Report>,
    #[serde(skip_serializing_if = "Option::is_none")]
    mutants: Option<MutantsReport>,
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    if args.list {
        return list_models(args.output);
    }
    let line = ProgressLine::default();
    let options = options(args)?;
    if args.subject.model.is_none() {
        if args.subject.seed_config || !args.subject.size.is_empty() {
            bail!("which model? A size means nothing without one; see `interlock check --list`");
        }
        return check_all(args, &options, &line);
    }
    let entry = args.subject.find()?;
    let model = args.subject.build(&entry)?;
    let is_of_model = args.mutant.is_none();
    let check = || check_one(entry.name, &*model, &options, &line);
    let report = is_of_model.then(check).transpose()?;
    let mutants = mutants_of(entry.name, &*model, args, &options, &line)?;
    let answer = Answer { report, mutants };
    write_traces(args, &answer)?;
    let code = exit_code(args, &answer, &options);
    match args.output {
        Format::Json => say_json(&answer)?,
        Format::Text => tell(args, &answer)?,
    }
    Ok(code)
}

fn options(args: &Args) -> anyhow::Result<Options> {
    let default = Options::default();
    Ok(Options {
        workers: args.workers.map_or(default.workers, usize::from),
        first: args.first,
        only: args.only.clone(),
        liveness: match (args.liveness, args.safety) {
            (true, _) => Liveness::On,
            (_, true) => Liveness::Off,
            _ => Liveness::Automatic,
        },
        // The seed's own configuration is too large to tell interchangeable tenants apart.
        symmetry: args.symmetry || args.subject.seed_config,
        plain: args.plain,
        mutant: args.mutant.clone(),
        fingerprints: args.fingerprints,
        max_depth: args.max_depth,
        max_memory: args.max_memory.or_else(memory::available),
        checkpoint: args.checkpoint.clone(),
        resume: args.resume,
        stop: stop_on_interrupt()?,
        progress: None,
    })
}

fn list_models(format: Format) -> anyhow::Result<ExitCode> {
    if format == Format::Text {
        say(&list())?;
        return Ok(ExitCode::SUCCESS);
    }
    let models: Vec<_> = entries()
        .iter()
        .map(|entry| {
            let keys = entry.keys.iter().map(|key| {
                serde_json::json!({
                    "key": key.key, "help": key.help, "default": key.default,
                    "least": key.least, "most": key.most,
                })
            });
            let mutants = entry.in_size("").map(|model| model.mutant_names());
            serde_json::json!({
                "model": entry.name, "summary": entry.summary, "covers": entry.covers().ok(),
                "size": keys.collect::<Vec<_>>(), "mutants": mutants.unwrap_or_default(),
            })
        })
        .collect();
    say_json(&models)?;
    Ok(ExitCode::SUCCESS)
}

fn check_one(
    name: &str,
    model: &dyn AnyModel,
    options: &Options,
    line: &ProgressLine,
) -> anyhow::Result<Report> {
    let outcome = model.check(name, &with_progress(name, options, line));
    line.clear();
    Ok(outcome?)
}

fn mutants_of(
    name: &str,
    model: &dyn AnyModel,
    args: &Args,
    options: &Options,
    line: &ProgressLine,
) -> anyhow::Result<Option<MutantsReport>> {
    if !args.mutants && args.mutant.is_none() {
        return Ok(None);
    }
    let options = Options { checkpoint: None, resume: false, ..options.clone() };
    let outcome = model.check_mutants(name, &with_progress(name, &options, line));
    line.clear();
    let mutants = outcome?;
    if mutants.mutants.is_empty() {
        bail!("{name} has no mutants");
    }
    Ok(Some(mutants))
}

fn with_progress(name: &str, options: &Options, line: &ProgressLine) -> Options {
    if !ProgressLine::is_wanted() {
        return options.clone();
    }
    let (name, line) = (name.to_owned(), line.clone());
    Options {
        progress: Some(Arc::new(move |progress| line.exploring(&name, progress))),
        ..options.clone()
    }
}

fn exit_code(args: &Args, answer: &Answer, options: &Options) -> ExitCode {
    if options.is_stopped() {
        output::complain("interrupted: these are the results so far");
        keep_note(args);
        return ExitCode::from(130);
    }
    let is_complete = answer.report.as_ref().is_none_or(|report| report.complete);
    if !is_complete && !args.first && args.max_depth.is_none() {
        let limit = options.max_memory.unwrap_or_default() >> 20;
        output::complain(&format!(
            "error: the states do not fit in {limit} MiB; allow more with --max-memory, or take a \
             smaller --size"
        ));
        keep_note(args);
        return ExitCode::from(2);
    }
    let hold = answer.report.as_ref().is_none_or(Report::all_hold);
    let killed = answer.mutants.as_ref().is_none_or(MutantsReport::all_killed);
    if hold && killed { ExitCode::SUCCESS } else { ExitCode::from(1) }
}

fn keep_note(args: &Args) {
    match &args.checkpoint {
        Some(path) => output::complain(&format!(
            "the exploration is saved in {}; run the same command with --resume to continue",
            path.display()
        )),
        None => {
            output::complain("use --checkpoint FILE to save the exploration and continue later")
        }
    }
}

/// Violations that have a trace, the deadlock first.
fn violations(report: &Report) -> Vec<String> {
    let deadlock = report.deadlock.iter().map(|_| "deadlock".to_owned());
    let invariants = report.invariants.iter().filter(|f| f.trace.is_some()).map(|f| f.name.clone());
    let properties = report.properties.iter().filter(|f| f.trace.is_some()).map(|f| f.name.clone());
    let refines = report.refines.values().filter(|f| f.trace.is_some()).map(|f| f.name.clone());
    invariants.chain(deadlock).chain(properties).chain(refines).collect()
}

/// The trace to write, and what it is a trace of: of the model, or of the one mutant.
fn first_trace(answer: &Answer) -> Option<(String, &Trace)> {
    if let Some(report) = &answer.report {
        let name = violations(report).into_iter().next()?;
        let title = format!("{} {}: {name}", report.model, report.size);
        return Some((title, report.trace(&name)?));
    }
    let report = answer.mutants.as_ref()?;
    let mutant = report.mutants.first()?;
    Some((format!("{} {}: {}", report.model, mutant.size, mutant.name), mutant.trace.as_ref()?))
}

fn write_traces(args: &Args, answer: &Answer) -> anyhow::Result<()> {
    if args.diagram.is_none() && args.tla.is_none() {
        return Ok(());
    }
    let Some((title, trace)) = first_trace(answer) else {
        output::complain("no promise is violated, so there is no trace to write");
        return Ok(());
    };
    if let Some(path) = &args.diagram {
        write_file(path, &render::diagram(&title, trace))?;
    }
    if let Some(path) = &args.tla {
        let module = path.file_stem().map_or_else(|| "Trace".into(), |stem| stem.to_string_lossy());
        write_file(path, &render::tla(&module, trace))?;
    }
    Ok(())
}

fn tell(args: &Args, answer: &Answer) -> anyhow::Result<()> {
    let of_model = answer.report.as_ref().map(|report| told(args, report));
    let of_mutants = answer.mutants.as_ref().map(|report| mutants_told(args, report));
    let parts: Vec<String> = of_model.into_iter().chain(of_mutants).collect();
    say(&parts.join("\n"))
}

fn told(args: &Args, report: &Report) -> String {
    let mut text = render::table(report, &command(report), color());
    for name in violations(report).into_iter().filter(|_| args.trace) {
        if let Some(trace) = report.trace(&name) {
            text += "\n";
            text += &render::story(&name, trace);
        }
        let finding = report.properties.iter().find(|finding| finding.name == name);
        for reason in finding.into_iter().flat_map(|finding| &finding.fairness) {
            text += &format!("   fair to {reason}\n");
        }
    }
    text
}

fn mutants_told(args: &Args, report: &MutantsReport) -> String {
    let mut text = render::mutants(report, color());
    for mutant in report.mutants.iter().filter(|_| args.trace) {
        if let Some(trace) = &mutant.trace {
            text += "\n";
            text += &render::story(&mutant.name, trace);
        }
    }
    text
}

/// The command that checks the same again.
fn command(report: &Report) -> String {
    let quote = if report.size.contains(' ') { "'" } else { "" };
    format!("interlock check {} --size {quote}{}{quote}", report.model, report.size)
}

/// Every model in its default size, one line each; then whether ours hold.
fn check_all(args: &Args, options: &Options, line: &ProgressLine) -> anyhow::Result<ExitCode> {
    let mut reports = Vec::new();
    for entry in entries() {
        if options.is_stopped() {
            output::complain("interrupted: these are the results so far");
            break;
        }
        let model = (entry.build)(&Default::default())?;
        let report = check_one(entry.name, &*model, options, line)?;
        if args.output == Format::Text {
            say(&summary_line(&report))?;
        }
        reports.push(report);
    }
    let is_seed = |report: &&Report| report.model.starts_with("seed/");
    let broken: Vec<_> =
        reports.iter().filter(|report| !is_seed(report) && !report.all_hold()).collect();
    match args.output {
        Format::Json => say_json(&reports)?,
        Format::Text => {
            let ours = reports.iter().filter(|report| !is_seed(report)).count();
            let text = match broken.first() {
                None => format!(
                    "\nall {ours} of ours hold; what the seeds break is known and shown above\n\
                     next: interlock check seed/kcp-storage --trace\n"
                ),
                Some(first) => format!(
                    "\n{} of ours are broken\nnext: interlock check {} --trace\n",
                    broken.len(),
                    first.model
                ),
            };
            say(&text)?;
        }
    }
    if options.is_stopped() {
        return Ok(ExitCode::from(130));
    }
    Ok(if broken.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(1) })
}

fn summary_line(report: &Report) -> String {
    let mut found = Vec::new();
    for (name, verdict) in report
        .invariants
        .iter()
        .map(|f| (&f.name, f.verdict))
        .chain(report.properties.iter().map(|f| (&f.name, f.verdict)))
        .chain(report.refines.values().map(|f| (&f.name, f.verdict)))
        .chain(report.reachable.iter().map(|f| (&f.name, f.verdict)))
    {
        match verdict {
            Verdict::Holds => {}
            Verdict::Violated => found.push(format!("{name} violated")),
            Verdict::Vacuous => found.push(format!("{name} vacuous")),
            Verdict::Unchecked => found.push(format!("{name} not checked")),
        }
    }
    if report.deadlock.is_some() {
        found.push("deadlock".to_owned());
    }
    let verdict = if found.is_empty() { "all hold".to_owned() } else { found.join(", ") };
    let states = render::thousands(report.distinct_states);
    format!("{:26} {states:>11} states  {verdict}  ({})\n", report.model, report.size)
}
