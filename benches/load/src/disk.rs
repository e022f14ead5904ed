//! What a durable write costs on this disk, whoever makes it.

use crate::measure;
use serde_json::{Value, json};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::Instant;

/// Writes of 1,100 bytes behind each other into room that is there already, each with an `fdatasync`.
pub fn sync_latency(directory: &Path) -> anyhow::Result<Value> {
    let path = directory.join("sync");
    let file = std::fs::File::create(&path)?;
    file.write_all_at(&vec![0; 1 << 20], 0)?;
    file.sync_all()?;
    let mut times = Vec::new();
    for index in 0..500 {
        let started = Instant::now();
        file.write_all_at(&[1; 1100], index * 1100)?;
        file.sync_data()?;
        times.push(started.elapsed());
    }
    std::fs::remove_file(&path)?;
    let (p50, p99) = measure::percentiles(&mut times);
    Ok(json!({"p50_us": p50, "p99_us": p99}))
}
