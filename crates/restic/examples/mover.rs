//! The mover as a program, so that `cargo xtask bench restic` can measure it from outside as it
//! measures restic: `mover backup|restore <repository> <folder>`, with the password in RESTIC_PASSWORD.

use interlock_restic::{Backup, Choice, Mark, Restore, Settings, Sort, Watch, backup, restore};
use std::error::Error;
use std::path::PathBuf;

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [work, repository, folder] = args.as_slice() else {
        return Err("say backup or restore, a repository and a folder".into());
    };
    let keys = [
        ("RESTIC_REPOSITORY".to_owned(), repository.clone()),
        ("RESTIC_PASSWORD".to_owned(), std::env::var("RESTIC_PASSWORD")?),
    ];
    let settings = Settings::from_secret(&keys.into(), None)?;
    let folder = PathBuf::from(folder);
    match work.as_str() {
        "backup" => {
            let (sort, mark) = (Sort::Volume, Mark::Volsync);
            let job = Backup { folder, sort, mark, allow_empty: false, unlock: false };
            backup(&settings, &job, &Watch::default())?;
        }
        "restore" => {
            let job = Restore {
                into: folder,
                choice: Choice::Newest { as_of: None, previous: 0 },
                delete_other_files: false,
                allow_empty: false,
                capacity_bytes: None,
                unlock: false,
            };
            restore(&settings, &job, &Watch::default())?;
        }
        other => return Err(format!("{other} is neither backup nor restore").into()),
    }
    Ok(())
}
