//! Attackers who ask and do not read, and one who was turned out and stays.

use super::field::{ACCOUNTS, Field, MAPS, Seen, make, newest, step_back};
use super::frames::Frames;
use super::http::{Ask, Http};
use anyhow::Context;
use serde_json::json;
use std::time::{Duration, Instant};

/// A server has so long to begin its answers.
const BEGIN: Duration = Duration::from_secs(30);
/// A watch that nobody reads is ended after half a minute, and this is a little more.
const STALL: Duration = Duration::from_secs(36);
/// What was ended has arrived by then.
const ARRIVAL: Duration = Duration::from_secs(60);
/// The rights to open watches are checked each minute.
const RIGHTS: Duration = Duration::from_secs(80);

/// Ten megabytes to list.
pub(super) fn prepare_lists(field: &Field) -> anyhow::Result<()> {
    field.fill(20, 500_000)
}

/// Hundreds of lists on two connections with a closed window.
pub(super) fn lists(field: &Field) -> anyhow::Result<Seen> {
    step_back()?;
    let deadline = Instant::now() + field.duration;
    let mut connections = [Frames::connect(&field.loud, 1)?, Frames::connect(&field.loud, 1)?];
    for number in 0..400 {
        connections[number % 2].get(MAPS)?;
        if number % 20 == 19 {
            read_all(&mut connections, Duration::from_millis(20))?;
        }
    }
    while Instant::now() < deadline {
        read_all(&mut connections, Duration::from_millis(100))?;
    }
    let mut seen = Seen::default();
    for stream in connections.iter().flat_map(|connection| connection.streams.values()) {
        match stream.status {
            Some(status) => seen.note(status),
            None => seen.wrong.push("a list has no answer".to_owned()),
        }
        seen.closed += usize::from(stream.is_over && stream.status == Some(200));
    }
    Ok(seen)
}

fn read_all(connections: &mut [Frames], time: Duration) -> anyhow::Result<()> {
    for connection in connections {
        connection.until(time, |_| false)?;
    }
    Ok(())
}

/// An object that changes.
pub(super) fn prepare_watches(field: &Field) -> anyhow::Result<()> {
    field.fill(1, 10)
}

/// Hundreds of watches that nobody reads, and large changes for all of them.
pub(super) fn watches(field: &Field) -> anyhow::Result<Seen> {
    step_back()?;
    let path = format!("{MAPS}?watch=true&resourceVersion={}", newest(&field.loud)?);
    let mut watches = Frames::connect(&field.loud, 1)?;
    for _ in 0..500 {
        watches.get(&path)?;
    }
    watches.until(BEGIN, |it| it.streams.values().all(|stream| stream.status.is_some()))?;
    let mut writer = Http::connect(&field.loud)?;
    for round in 0..40 {
        let change = json!({"data": {"x": format!("{round}{}", "y".repeat(300_000))}}).to_string();
        writer.ask(Ask::merge(&format!("{MAPS}/large-0"), change.as_bytes()))?;
        watches.until(Duration::from_millis(1), |_| false)?;
    }
    watches.until(STALL, |_| false)?;
    watches.open()?;
    watches.until(ARRIVAL, |it| it.streams.values().all(|stream| stream.is_over))?;
    let mut seen = Seen::default();
    let mut open = 0;
    for stream in watches.streams.values() {
        let tail = String::from_utf8_lossy(&stream.tail);
        match (stream.is_over || watches.is_closed, tail.contains("\"code\":410")) {
            (true, true) => seen.note(410),
            (true, false) => seen.closed += 1,
            (false, _) => open += 1,
        }
    }
    if open > 0 {
        seen.wrong.push(format!("{open} watches that nobody read are open"));
    }
    Ok(seen)
}

/// Watches of an account that is deleted: they end.
pub(super) fn deleted_account(field: &Field) -> anyhow::Result<Seen> {
    step_back()?;
    let admin = field.admin_of_loud();
    let eve = Field::account(&admin, "eve")?;
    let mut watches = Frames::connect(&eve, 1 << 20)?;
    for _ in 0..50 {
        watches.get("/api/v1/secrets?watch=true")?;
    }
    watches.until(BEGIN, |it| it.streams.values().all(|stream| stream.status == Some(200)))?;
    let path = format!("{ACCOUNTS}/eve");
    Http::connect(&admin)?.ask(Ask { method: "DELETE", ..Ask::get(&path) })?.good()?;
    watches.until(RIGHTS, |it| it.streams.values().all(|stream| stream.is_over))?;
    let over = watches.streams.values().filter(|stream| stream.is_over).count();
    let mut seen = Seen { closed: over, ..Seen::default() };
    if over < watches.streams.len() {
        let open = watches.streams.len() - over;
        seen.wrong.push(format!("{open} watches of a deleted account are open"));
    }
    // What is written now reaches nobody of them.
    make(&admin, "/api/v1/namespaces/default/secrets", &json!({"metadata": {"name": "later"}}))
        .context("the administrator cannot write")?;
    watches.until(Duration::from_secs(1), |_| false)?;
    let has = |tail: &[u8]| String::from_utf8_lossy(tail).contains("\"later\"");
    if watches.streams.values().any(|stream| has(&stream.tail)) {
        seen.wrong.push("a deleted account was sent a Secret".to_owned());
    }
    Ok(seen)
}
