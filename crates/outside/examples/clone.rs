//! Volumes and snapshots from the command line, so that `cargo xtask bench clone` can measure them from
//! outside as it measures `cp`:
//! `clone <root> empty <volume>`, `clone <root> snapshot <snapshot> <of volume>`,
//! `clone <root> volume <volume> <from snapshot>`.

use interlock_outside::volumes::{FromSnapshot, LocalVolumes, Made, NewVolume, Volumes};
use std::error::Error;
use std::time::Duration;

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let (root, args) = args.split_first().ok_or("say a folder")?;
    let volumes = LocalVolumes::open(root, "bench")?;
    let volume = |handle: &str, from| NewVolume {
        handle: handle.to_owned(),
        owner: "bench".to_owned(),
        capacity_bytes: u64::MAX,
        from,
    };
    let is_snapshot = match *args {
        ["empty", handle] => {
            volumes.make_volume(&volume(handle, None))?;
            false
        }
        ["snapshot", handle, of] => {
            volumes.take_snapshot(handle, of)?;
            true
        }
        ["volume", handle, from] => {
            let from = FromSnapshot { handle: from.to_owned(), digest: String::new() };
            volumes.make_volume(&volume(handle, Some(from)))?;
            false
        }
        _ => return Err("say empty, snapshot or volume, and the handles".into()),
    };
    let handle = args[1];
    loop {
        let state = match is_snapshot {
            true => volumes.snapshot_state(handle)?,
            false => volumes.volume_state(handle)?,
        };
        match state {
            Made::Making(_) => std::thread::sleep(Duration::from_millis(1)),
            Made::Whole(_) => return Ok(()),
            Made::Failed(failure) => return Err(failure.message.into()),
            Made::Missing => return Err(format!("there is no {handle}").into()),
        }
    }
}
