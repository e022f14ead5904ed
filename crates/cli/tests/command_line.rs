//! The binary as a person or a script runs it.

use serde_json::Value;
use std::process::{Command, Output};

fn interlock(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_interlock")).args(args).output().expect("the binary runs")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn json(args: &[&str]) -> (i32, Value) {
    let output = interlock(&[args, &["-o", "json"]].concat());
    let answer = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|_| panic!("no JSON from {args:?}: {}", text(&output.stderr)));
    (output.status.code().unwrap_or(-1), answer)
}

#[test]
fn a_violated_seed_exits_with_1_and_tells_in_how_many_steps() {
    let (code, answer) = json(&["check", "seed/kcp-storage", "--size", "clusters=3"]);
    assert_eq!(code, 1);
    assert_eq!(answer["model"], "seed/kcp-storage");
    assert_eq!(answer["size"], "clusters=3");
    assert_eq!(answer["distinct_states"], 128);
    assert_eq!(answer["generated_states"], 705);
    assert_eq!(answer["depth"], 11);
    assert!(answer["deadlock"].is_null());
    let find = |name: &str| {
        let invariants = answer["invariants"].as_array().unwrap();
        invariants.iter().find(|finding| finding["name"] == name).unwrap().clone()
    };
    assert_eq!(find("Inv_UsableByAtMostOne")["verdict"], "violated");
    assert_eq!(find("Inv_UsableByAtMostOne")["steps"], 5);
    assert_eq!(find("Inv_NSAtMostOneCluster")["verdict"], "vacuous");
    assert_eq!(find("TypeOK")["verdict"], "holds");
}

#[test]
fn a_model_that_keeps_its_promises_exits_with_0() {
    let (code, answer) =
        json(&["check", "seed/dpu-multi-tenant", "--size", "nodes=1,dpus=1,tenants=2", "--safety"]);
    assert_eq!(code, 0);
    assert_eq!(answer["distinct_states"], 1_835_136);
    assert_eq!(answer["generated_states"], 28_942_849);
    assert_eq!(answer["depth"], 24);
}

#[test]
fn leaving_the_flags_out_changes_no_number() {
    let size = ["check", "seed/dpu-multi-tenant", "--size", "nodes=2,dpus=1,tenants=1", "--safety"];
    let (_, reduced) = json(&size);
    let (_, plain) = json(&[&size[..], &["--plain"]].concat());
    for key in ["distinct_states", "generated_states", "depth"] {
        assert_eq!(reduced[key], plain[key], "{key}");
    }
    assert!(plain["reduction"].is_null() && !reduced["reduction"].is_null());
}

#[test]
fn both_historic_races_of_the_seed_are_found_in_ten_states() {
    let size = ["check", "seed/dpu-multi-tenant", "--size", "nodes=1,dpus=1,tenants=2"];
    let (_, answer) = json(&[&size[..], &["--safety", "--mutants"]].concat());
    let mutants = answer["mutants"]["mutants"].as_array().unwrap();
    assert_eq!(mutants.len(), 2);
    for mutant in mutants {
        assert_eq!(mutant["killed"], true, "{mutant}");
        assert_eq!(mutant["broken"], "TenantIsolation");
        assert_eq!(mutant["steps"], 9);
    }
}

#[test]
fn a_programmed_node_that_can_never_be_reclaimed_is_a_loop_without_faults() {
    let size = "nodes=1,dpus=1,tenants=1";
    let (code, answer) =
        json(&["check", "seed/dpu-multi-tenant", "--size", size, "--faults", "none", "--liveness"]);
    assert_eq!(code, 1);
    let properties = answer["properties"].as_array().unwrap();
    let find = |name: &str| properties.iter().find(|finding| finding["name"] == name).unwrap();
    assert_eq!(find("EventualConsistency")["verdict"], "vacuous");
    let finding = find("ProgrammedCanBeReclaimed");
    assert_eq!(finding["verdict"], "violated");
    assert_eq!(finding["loop_steps"], 0, "it rests there for ever");
}

#[test]
fn a_usage_error_exits_with_2_and_says_what_to_do() {
    for (args, word) in [
        (&["check", "seed/kcp"][..], "did you mean `seed/kcp-storage`?"),
        (&["check", "seed/kcp-storage", "--size", "cluster=3"], "it has: clusters"),
        (&["check", "seed/kcp-storage", "--size", "clusters=99"], "goes from 1 to"),
        (&["check", "seed/kcp-storage", "--size", "clusters"], "write key=value"),
        (&["check", "seed/kcp-storage", "--only", "Nothing"], "promises nothing called"),
        (&["check", "seed/kcp-storage", "--max-memory", "8X"], "write 512M or 8G"),
        (&["check", "seed/kcp-storage", "--faults", "none"], "does not support --faults"),
        (&["check", "seed/kcp-storage", "--seed-config"], "has no seed configuration"),
        (&["check", "--size", "clusters=3"], "which model?"),
        (&["check", "seed/kcp-storage", "--liveness", "--symmetry"], "cannot be used with"),
        (&["check", "seed/kcp-storage", "--resume"], "--checkpoint"),
        (&["check", "seed/dpu-multi-tenant", "--faults", "some"], "none, core or all"),
        (&["simulate"], "no model is named"),
    ] {
        let output = interlock(args);
        let error = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{args:?}: {error}");
        assert!(error.contains(word), "{args:?}: {error}");
        assert!(output.stdout.is_empty(), "{args:?}");
    }
}

#[test]
fn too_little_memory_is_an_error_that_says_so_and_keeps_the_checkpoint() {
    let path = std::env::temp_dir().join(format!("interlock-test-{}", std::process::id()));
    let file = path.to_string_lossy().into_owned();
    let size = ["check", "seed/dpu-multi-tenant", "--size", "nodes=1,dpus=1,tenants=2"];
    let size = [&size[..], &["--plain", "--safety", "--checkpoint", &file]].concat();
    let output = interlock(&[&size[..], &["--max-memory", "4M"]].concat());
    let error = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{error}");
    assert!(error.contains("do not fit in 4 MiB") && error.contains("--resume"), "{error}");
    assert!(path.exists());
    let (code, answer) = json(&[&size[..], &["--resume"]].concat());
    std::fs::remove_file(&path).unwrap();
    assert_eq!((code, &answer["distinct_states"]), (0, &Value::from(1_835_136)));
}

/// Whether the process has said what it does when it is interrupted.
#[cfg(target_os = "linux")]
fn listens_for_interrupts(pid: u32) -> bool {
    let status =
        std::fs::read_to_string(format!("/proc/{pid}/status")).expect("the process is there");
    let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
    let caught = caught.expect("the kernel tells which signals are caught");
    let interrupt = 1 << (2 - 1);
    u64::from_str_radix(caught.trim(), 16).expect("a number in base 16") & interrupt != 0
}

#[cfg(target_os = "linux")]
#[test]
fn an_interrupt_stops_cleanly_and_prints_what_was_seen() {
    use std::process::Stdio;
    let size = ["check", "seed/dpu-multi-tenant", "--seed-config", "-o", "json"];
    let child = Command::new(env!("CARGO_BIN_EXE_interlock"))
        .args(size)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    while !listens_for_interrupts(child.id()) {
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
    let killed = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(killed.success());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{}", text(&output.stderr));
    let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(answer["complete"], false);
    assert!(answer["distinct_states"].as_u64().unwrap() > 0);
    assert!(text(&output.stderr).contains("interrupted"));
}

#[test]
fn the_same_seed_walks_the_same_way_twice() {
    let args = ["simulate", "seed/kcp-storage", "--traces", "200", "--depth", "30", "--seed", "7"];
    let (code, first) = json(&args);
    let (_, second) = json(&[&args[..], &["--workers", "1"]].concat());
    assert_eq!(code, 1);
    assert_eq!(first["steps"], second["steps"]);
    let violation = &first["violations"][0];
    assert_eq!(violation["name"], "Inv_UsableByAtMostOne");
    assert_eq!(violation["steps"], 5, "the walk is shrunk to what matters");
    assert_eq!(violation["trace_number"], second["violations"][0]["trace_number"]);
}

#[test]
fn traces_are_reported_drawn_and_written_as_a_module() {
    let dir = std::env::temp_dir().join(format!("interlock-traces-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    let (page, module) = (dir.join("trace.html"), dir.join("Trace.tla"));
    let output = interlock(&[
        "check",
        "seed/kcp-storage",
        "--trace",
        "--diagram",
        &page.to_string_lossy(),
        "--tla",
        &module.to_string_lossy(),
    ]);
    let told = text(&output.stdout);
    assert!(told.contains("Start(c1)") && told.contains("pvc_state[c1]"), "{told}");
    assert!(!told.contains('\x1b'), "no colours into a pipe");
    let (page, module) =
        (std::fs::read_to_string(&page).unwrap(), std::fs::read_to_string(&module).unwrap());
    assert!(page.contains("<svg"));
    for outside in ["<link", "src=", "href=\"http", "@import"] {
        assert!(!page.contains(outside), "the page stands alone: {outside}");
    }
    assert!(module.contains("MODULE Trace"));
    std::fs::remove_dir_all(&dir).unwrap();
}

/// The commands that a help text lists, as clap writes them: two spaces, the name, what it does.
fn commands_in(help: &str) -> Vec<&str> {
    let lines = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    let listed = lines.take_while(|line| !line.is_empty());
    let names = listed.filter_map(|line| line.strip_prefix("  ")?.split(' ').next());
    names.filter(|name| !name.is_empty() && *name != "help").collect()
}

/// Asks a command for its help, and the commands below it; how many there are.
fn helps(path: &[&str]) -> usize {
    let output = interlock(&[path, &["--help"]].concat());
    let help = text(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{path:?}: {}", text(&output.stderr));
    let (says, usage) = help.split_once("Usage: ").unwrap_or_default();
    assert!(!says.trim().is_empty(), "{path:?} does not say what it does:\n{help}");
    let called = [&["interlock"], path].concat().join(" ");
    assert!(usage.starts_with(&called), "{path:?}: no usage of {called:?} in\n{help}");
    let below = commands_in(&help).into_iter().map(|name| helps(&[path, &[name]].concat()));
    1 + below.sum::<usize>()
}

#[test]
fn every_command_has_help() {
    let top = text(&interlock(&["--help"]).stdout);
    for name in ["check", "up", "move", "rollout", "completions"] {
        assert!(commands_in(&top).contains(&name), "no {name} in\n{top}");
    }
    let commands = helps(&[]);
    assert!(commands > 30, "only {commands} commands were found");
    // What `up --demo` runs is not listed.
    assert_eq!(helps(&["write-numbers"]), 1);
    let list = text(&interlock(&["check", "--list"]).stdout);
    for name in ["seed/kcp-storage", "seed/dpu-multi-tenant"] {
        assert!(list.contains(name), "{list}");
    }
}

#[test]
fn the_list_of_models_names_the_mutants_of_each() {
    let (code, models) = json(&["check", "--list"]);
    assert_eq!(code, 0);
    let models = models.as_array().unwrap();
    let mutants = |name: &str| {
        let model = models.iter().find(|model| model["model"] == name).unwrap();
        model["mutants"].as_array().unwrap().clone()
    };
    assert_eq!(mutants("seed/dpu-multi-tenant").len(), 2);
    assert!(mutants("placement").iter().any(|name| name == "permit-ignores-force"));
    assert!(mutants("seed/kcp-storage").is_empty());
}

#[test]
fn the_help_of_force_release_explains_what_is_attested() {
    let help = text(&interlock(&["force-release", "--help"]).stdout);
    for word in
        ["powered-off", "storage-fenced", "accept-divergence", "interlock move", "[default: 30s]"]
    {
        assert!(help.contains(word), "no {word} in:\n{help}");
    }
}
