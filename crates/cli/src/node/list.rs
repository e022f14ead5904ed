//! `interlock node list`: one line for each machine.

use super::Common;
use super::hub::Hub;
use super::picture::{Row, rows};
use crate::output::{Format, say, say_json};
use crate::words::{age_or_dash, table};
use interlock_api::nodes::NodePhase;
use jiff::Timestamp;
use std::process::ExitCode;

/// Options of `node list`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Only machines of this tenant
    #[arg(long, value_name = "NAME")]
    tenant: Option<String>,
    /// Only machines of this rack
    #[arg(long, value_name = "NAME")]
    rack: Option<String>,
    /// Only machines in this phase: Available, Bound, Draining, Releasing or Quarantined
    #[arg(long, value_name = "PHASE", value_parser = phase)]
    phase: Option<NodePhase>,
    #[command(flatten)]
    common: Common,
}

fn phase(text: &str) -> Result<NodePhase, String> {
    let all = [
        NodePhase::Available,
        NodePhase::Bound,
        NodePhase::Draining,
        NodePhase::Releasing,
        NodePhase::Quarantined,
    ];
    let found = all.into_iter().find(|phase| phase.to_string().eq_ignore_ascii_case(text));
    found.ok_or_else(|| "write Available, Bound, Draining, Releasing or Quarantined".to_owned())
}

/// Runs the command.
pub(super) async fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let hub = Hub::open(&args.common.location).await?;
    let (nodes, reports) = (hub.nodes().await?, hub.reports().await?);
    let mut rows = rows(&nodes, &reports);
    rows.retain(|row| is_asked_for(args, row));
    match args.common.output {
        Format::Json => say_json(&rows)?,
        Format::Text => say(&page(&rows, Timestamp::now()))?,
    }
    let is_fine = !rows.iter().any(|row| row.needs_a_person);
    Ok(if is_fine { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn is_asked_for(args: &Args, row: &Row) -> bool {
    args.tenant.as_ref().is_none_or(|tenant| row.tenant.as_ref() == Some(tenant))
        && args.rack.as_ref().is_none_or(|rack| row.rack == *rack)
        && args.phase.is_none_or(|phase| row.phase == phase)
}

fn page(rows: &[Row], now: Timestamp) -> String {
    if rows.is_empty() {
        return "no machines\nnext: kubectl apply a Rack and a PhysicalNode (docs/nodes.md)\n"
            .to_owned();
    }
    let dash = |text: &Option<String>| text.clone().unwrap_or_else(|| "-".to_owned());
    let cells = |row: &Row| {
        vec![
            row.name.clone(),
            row.rack.clone(),
            row.phase.to_string(),
            age_or_dash(now, row.since),
            dash(&row.tenant),
            dash(&row.claim),
            row.epoch.to_string(),
            if row.waits_for.is_empty() { "-".to_owned() } else { row.waits_for.join("; ") },
        ]
    };
    let cells: Vec<Vec<String>> = rows.iter().map(cells).collect();
    let head = ["MACHINE", "RACK", "PHASE", "FOR", "TENANT", "CLAIM", "EPOCH", "WAITS FOR"];
    let mut page = table(&head, &cells);
    for row in rows.iter().filter(|row| row.needs_a_person) {
        if let Some(next) = &row.next {
            page += &format!("next for {}: {next}\n", row.name);
        }
    }
    page
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(name: &str, phase: NodePhase) -> Row {
        Row {
            name: name.to_owned(),
            rack: "r1".to_owned(),
            phase,
            since: Timestamp::from_second(1_000).ok(),
            tenant: Some("blue".to_owned()),
            claim: None,
            cluster: None,
            epoch: 3,
            floor: 3,
            network_ready: false,
            waits_for: vec!["DPU r1.d2 has not reported this machine".to_owned()],
            needs_a_person: true,
            next: Some("interlock node fence n1".to_owned()),
        }
    }

    #[test]
    fn the_table_says_how_long_and_what_for_and_the_next_command_stands_below() {
        let page = page(&[row("n1", NodePhase::Releasing)], Timestamp::from_second(1_200).unwrap());
        assert_eq!(
            page,
            "MACHINE  RACK  PHASE      FOR    TENANT  CLAIM  EPOCH  WAITS FOR\n\
             n1       r1    Releasing  3m20s  blue    -      3      DPU r1.d2 has not reported this machine\n\
             next for n1: interlock node fence n1\n"
        );
        assert!(super::page(&[], Timestamp::UNIX_EPOCH).starts_with("no machines\nnext: "));
    }

    #[test]
    fn a_phase_is_read_whatever_its_case_and_a_wrong_one_is_answered_with_all() {
        assert_eq!(phase("bound"), Ok(NodePhase::Bound));
        assert!(phase("free").unwrap_err().contains("Available, Bound"));
    }
}
