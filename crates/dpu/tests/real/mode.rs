//! As whom the tests run: as root, and as nobody in a user namespace, where the kernel allows it.

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Command, ExitCode};

const INSIDE: &str = "INTERLOCK_TEST_DPU_INSIDE";
/// nft, ip and python3 as the system has them: whoever nobody is, they may not enter somebody's home.
const PATH: &str = "/usr/sbin:/usr/bin:/sbin:/bin";

/// A part of the tests: its name, and what it does.
pub(crate) type Part = (&'static str, fn());

/// A program that the parts start: the variable that names it, and where it is.
pub(crate) type Program = (&'static str, PathBuf);

/// Runs the parts in each mode, if the ignored tests are asked for.
pub(crate) fn run(parts: &[Part]) -> ExitCode {
    run_with(parts, &[])
}

/// The same, with programs that the parts start.
pub(crate) fn run_with(parts: &[Part], programs: &[Program]) -> ExitCode {
    if std::env::var_os(INSIDE).is_some() {
        // As with any test: those whose name has this in it.
        let only = std::env::args().nth(1).unwrap_or_default();
        for (name, part) in parts.iter().filter(|(name, _)| name.contains(&only)) {
            let began = std::time::Instant::now();
            part();
            println!("    ok, {:.1} s: {name}", began.elapsed().as_secs_f32());
        }
        return ExitCode::SUCCESS;
    }
    let words: Vec<String> = std::env::args().collect();
    if !words.iter().any(|word| word == "--ignored" || word == "--include-ignored") {
        println!("this needs nft, ip and namespaces: cargo xtask test-real");
        return ExitCode::SUCCESS;
    }
    let only = words.iter().skip(1).find(|word| !word.starts_with('-'));
    let folder = tempfile::tempdir().unwrap();
    std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    // Nobody may be unable to reach the folder that it was built in.
    let program = folder.path().join("test");
    std::fs::copy(std::env::current_exe().unwrap(), &program).unwrap();
    let copied = |(variable, from): &Program| {
        let copy = folder.path().join(variable);
        std::fs::copy(from, &copy).unwrap();
        (*variable, copy)
    };
    let programs: Vec<Program> = programs.iter().map(copied).collect();
    let is_root = rustix::process::geteuid().is_root();
    let mut ran = 0;
    for is_nobody in [false, true] {
        let mode = if is_nobody { "unprivileged, in a user namespace" } else { "as root" };
        if !is_nobody && !is_root {
            println!("  {mode}: not here, this is not root");
            continue;
        }
        if is_nobody && !command(is_root, true).arg("true").status().unwrap().success() {
            println!("  {mode}: not here, this kernel does not allow it");
            continue;
        }
        println!("  {mode}");
        ran += 1;
        let mut command = command(is_root, is_nobody);
        let status = command.envs(programs.clone()).arg(&program).args(only).status().unwrap();
        if !status.success() {
            println!("  {mode}: failed");
            return ExitCode::FAILURE;
        }
    }
    if ran == 0 {
        println!("neither root nor a user namespace: nothing was tested");
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}

/// What starts a program in a network namespace of its own.
fn command(is_root: bool, as_nobody: bool) -> Command {
    let nobody = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"];
    let mut words: Vec<&str> = Vec::new();
    if is_root && as_nobody {
        words.extend(nobody);
    }
    words.push("unshare");
    if as_nobody {
        words.extend(["--user", "--map-root-user"]);
    }
    words.extend(["--net", "--"]);
    let mut command = Command::new(words[0]);
    command.args(&words[1..]).env(INSIDE, "yes").env("PATH", PATH).current_dir("/");
    command
}

/// A script, in a folder of this test.
pub(crate) fn script(folder: &std::path::Path, name: &str, text: &str) -> PathBuf {
    let path = folder.join(name);
    std::fs::write(&path, text).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    path
}
