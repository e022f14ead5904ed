//! The command of the platform that says whether a DPU has power, and that switches it off: for Racks with `fencing.power: Command`.
//!
//! What it says is evidence: a DPU that is off counts as clean. So only the word Off, from a command that ended well and in
//! time, is one. Whatever else happens is Unknown, and a person has to act.

use anyhow::bail;
use interlock_api::nodes::DpuName;
use interlock_nodes::power::{IsOff, Power, PowerOff, PowerState};
use rustix::fs::MemfdFlags;
use rustix::process::{Pid, Signal, kill_process_group};
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// How long one call may take.
const DEADLINE: Duration = Duration::from_secs(20);
/// How often it is checked whether it has ended.
const EVERY: Duration = Duration::from_millis(10);
/// Of what it prints, no more is read.
const MOST_BYTES: u64 = 1024;
/// What it is started with. The credentials of this process, and of others that its environment may have, are not for it.
const KEPT: [&str; 3] = ["PATH", "HOME", "LANG"];

const NO_COMMAND: &str =
    "no power command is configured here: declare the DPU off with interlock node fence";

/// Who knows about the power of DPUs, if anybody does.
#[derive(Debug, Clone)]
pub(crate) struct PowerCommand {
    program: Option<PathBuf>,
    deadline: Duration,
}

impl PowerCommand {
    /// A program that is run as `PROGRAM status RACK/DPU` and `PROGRAM off RACK/DPU`; None: only a person says that a DPU
    /// is off.
    pub(crate) fn of(program: Option<PathBuf>) -> anyhow::Result<PowerCommand> {
        // One without a slash is found in PATH.
        let missing = program.as_ref().filter(|path| path.components().count() > 1);
        if let Some(missing) = missing.filter(|path| !path.is_file()) {
            bail!("--power-command {}: there is no such file", missing.display());
        }
        Ok(PowerCommand { program, deadline: DEADLINE })
    }

    /// What it prints to `PROGRAM VERB RACK/DPU`; an error if it did not end well.
    async fn run(&self, verb: &'static str, dpu: &DpuName) -> Result<String, String> {
        let Some(program) = self.program.clone() else { return Err(NO_COMMAND.to_owned()) };
        let (deadline, name) = (self.deadline, argument(dpu)?);
        let call = move || {
            let mut command = Command::new(&program);
            command.args([verb, &name]).env_clear();
            command.envs(KEPT.iter().filter_map(|key| Some((key, std::env::var_os(key)?))));
            let said = call(command, deadline);
            said.map_err(|because| format!("{} {verb} {name}: {because}", program.display()))
        };
        let said = tokio::task::spawn_blocking(call).await;
        said.unwrap_or_else(|error| Err(format!("the power command was not run: {error}")))
    }
}

/// A DPU as an argument. Its name comes from an object that a person wrote: it is no option, and no path.
fn argument(dpu: &DpuName) -> Result<String, String> {
    let is_word = |part: &str| {
        let is_known = |it: u8| it.is_ascii_lowercase() || it.is_ascii_digit() || it == b'-';
        !part.is_empty() && !part.starts_with('-') && part.bytes().all(is_known)
    };
    let DpuName { rack, dpu } = dpu;
    if !(is_word(rack) && is_word(dpu)) {
        return Err(format!("{rack:?} and {dpu:?} are no names of a rack and a DPU"));
    }
    Ok(format!("{rack}/{dpu}"))
}

impl interlock_shell::Driver<Power> for PowerCommand {
    async fn ask(&self, IsOff(dpu): IsOff) -> Result<PowerState, String> {
        if self.program.is_none() {
            return Ok(PowerState::Unknown(NO_COMMAND.to_owned()));
        }
        let unknown = |because: String| {
            tracing::warn!(
                because,
                "the power command says nothing of DPU {}/{}",
                dpu.rack,
                dpu.dpu
            );
            PowerState::Unknown(because)
        };
        Ok(match self.run("status", &dpu).await {
            Ok(said) => match said.trim() {
                "Off" => PowerState::Off,
                "On" => PowerState::On,
                "Unknown" => PowerState::Unknown("Unknown".to_owned()),
                other => unknown(format!("it printed {other:?}, and not On, Off or Unknown")),
            },
            Err(because) => unknown(because),
        })
    }

    async fn perform(&self, PowerOff(dpu): PowerOff) -> Result<(), String> {
        self.run("off", &dpu).await.map(drop)
    }
}

/// Runs a command until its end or the deadline. What it prints goes to memory, so whoever it leaves behind keeps nobody
/// waiting.
fn call(mut command: Command, deadline: Duration) -> Result<String, String> {
    let failed = |error: io::Error| error.to_string();
    let (out, err) = (memory().map_err(failed)?, memory().map_err(failed)?);
    command.stdin(Stdio::null()).process_group(0);
    command.stdout(out.try_clone().map_err(failed)?).stderr(err.try_clone().map_err(failed)?);
    let mut child = command.spawn().map_err(failed)?;
    let status = ended(&mut child, deadline).map_err(failed)?;
    let Some(status) = status else {
        return Err(format!("it was killed: no answer within {} s", deadline.as_secs_f32()));
    };
    if !status.success() {
        let said = printed(err).map_err(failed)?;
        let line = said.trim().lines().next().unwrap_or_default();
        return Err(format!("it ended with {status}: {line}"));
    }
    printed(out).map_err(failed)
}

fn memory() -> io::Result<File> {
    Ok(File::from(rustix::fs::memfd_create("power-command", MemfdFlags::CLOEXEC)?))
}

fn printed(mut memory: File) -> io::Result<String> {
    let mut text = Vec::new();
    memory.seek(SeekFrom::Start(0))?;
    memory.take(MOST_BYTES).read_to_end(&mut text)?;
    Ok(String::from_utf8_lossy(&text).into_owned())
}

/// How it ended; None: it did not in time, and was killed with all that it had started.
fn ended(child: &mut Child, deadline: Duration) -> io::Result<Option<ExitStatus>> {
    let began = Instant::now();
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if began.elapsed() > deadline {
            kill_process_group(Pid::from_child(child), Signal::KILL)?;
            child.wait()?;
            return Ok(None);
        }
        std::thread::sleep(EVERY);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use interlock_shell::Driver;
    use std::path::Path;

    /// A script. It is written by a process of its own: in this one another test may start a child meanwhile, which would
    /// hold the file open for writing, and then it cannot be executed.
    fn script(folder: &Path, name: &str, text: &str) -> PowerCommand {
        let path = folder.join(name);
        let write = "printf '#!/bin/sh\\n%s\\n' \"$1\" > \"$2\" && chmod 755 \"$2\"";
        let mut command = Command::new("sh");
        command.args(["-c", write, "sh", text]).arg(&path);
        assert!(command.status().expect("sh runs").success());
        PowerCommand::of(Some(path)).expect("it is there")
    }

    async fn asked(command: &PowerCommand) -> PowerState {
        let answer = command.ask(IsOff(DpuName::new("r1", "d1"))).await;
        answer.expect("whatever happens is an answer")
    }

    fn unknown(state: PowerState) -> String {
        match state {
            PowerState::Unknown(because) => because,
            PowerState::On | PowerState::Off => panic!("{state:?}"),
        }
    }

    #[tokio::test]
    async fn the_command_is_asked_for_one_dpu_and_its_word_is_the_answer() {
        let folder = tempfile::tempdir().expect("a folder");
        let line = |word: &str| format!("[ \"$*\" = \"status r1/d1\" ] && echo {word}");
        for (word, state) in [
            ("Off", PowerState::Off),
            ("On", PowerState::On),
            ("Unknown", PowerState::Unknown("Unknown".to_owned())),
        ] {
            let command = script(folder.path(), word, &line(word));
            assert_eq!(asked(&command).await, state);
        }
    }

    #[tokio::test]
    async fn whatever_is_not_the_word_off_is_no_evidence() {
        let folder = tempfile::tempdir().expect("a folder");
        for (number, (text, says)) in [
            ("echo off", "it printed \"off\""),
            ("echo Off; echo Off", "it printed \"Off\\nOff\""),
            ("true", "it printed \"\""),
            ("echo Off; echo no route >&2; exit 3", "no route"),
            ("kill -9 $$", "signal: 9"),
        ]
        .into_iter()
        .enumerate()
        {
            let command = script(folder.path(), &number.to_string(), text);
            let because = unknown(asked(&command).await);
            assert!(because.contains(says), "{text}: {because}");
        }
        let gone = script(folder.path(), "gone", "echo Off");
        std::fs::remove_file(folder.path().join("gone")).expect("it was there");
        assert!(unknown(asked(&gone).await).contains("No such file"));
        let none = PowerCommand::of(None).expect("none is needed");
        assert_eq!(unknown(asked(&none).await), NO_COMMAND);
    }

    #[tokio::test]
    async fn a_command_that_does_not_end_is_killed_with_its_children() {
        let folder = tempfile::tempdir().expect("a folder");
        let noted = folder.path().join("child");
        let text = format!("sleep 600 & echo $! > {}; echo Off; wait", noted.display());
        let mut command = script(folder.path(), "slow", &text);
        command.deadline = Duration::from_secs(3);
        assert!(unknown(asked(&command).await).contains("no answer within 3 s"));
        let pid = std::fs::read_to_string(&noted).expect("it was started");
        let stat = format!("/proc/{}/stat", pid.trim());
        let lives = || std::fs::read_to_string(&stat).is_ok_and(|stat| !stat.contains(") Z "));
        let began = Instant::now();
        while lives() {
            assert!(began.elapsed() < Duration::from_secs(30), "the child lives on");
            std::thread::sleep(EVERY);
        }
    }

    #[tokio::test]
    async fn the_command_has_nothing_of_the_environment_of_this_process() {
        let folder = tempfile::tempdir().expect("a folder");
        // The last four are the shell's own.
        let known = "PATH|HOME|LANG|PWD|OLDPWD|SHLVL|_";
        let text = format!("env | grep -qvE '^({known})=' || echo Off");
        assert_eq!(asked(&script(folder.path(), "command", &text)).await, PowerState::Off);
    }

    #[tokio::test]
    async fn a_dpu_is_turned_off_by_the_same_command() {
        let folder = tempfile::tempdir().expect("a folder");
        let dpu = || PowerOff(DpuName::new("r1", "d1"));
        let right = script(folder.path(), "right", "[ \"$*\" = \"off r1/d1\" ]");
        assert_eq!(right.perform(dpu()).await, Ok(()));
        let wrong = script(folder.path(), "wrong", "echo not mine >&2; exit 1");
        let said = wrong.perform(dpu()).await.expect_err("it failed");
        assert!(said.contains("off r1/d1") && said.ends_with("not mine"), "{said}");
        let none = PowerCommand::of(None).expect("none is needed");
        assert_eq!(none.perform(dpu()).await, Err(NO_COMMAND.to_owned()));
    }

    #[test]
    fn a_name_that_is_an_option_or_a_path_is_not_passed_on() {
        assert_eq!(argument(&DpuName::new("r1", "d-1")), Ok("r1/d-1".to_owned()));
        for (rack, dpu) in [("--all", "d1"), ("r1", ""), ("r1", "../d1"), ("r1", "d1 d2")] {
            assert!(argument(&DpuName::new(rack, dpu)).is_err(), "{rack} {dpu}");
        }
    }

    #[test]
    fn a_program_that_is_not_there_is_refused_at_the_start() {
        let refused = PowerCommand::of(Some("/no/such/program".into())).expect_err("it is gone");
        assert_eq!(refused.to_string(), "--power-command /no/such/program: there is no such file");
        assert!(PowerCommand::of(Some("found-in-path".into())).is_ok());
    }
}
