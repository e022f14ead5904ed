//! Identities on moto, with a proxy in front that fails, delays, repeats and loses calls, and under kills:
//! run by `cargo xtask test-real`.
//!
//! `INTERLOCK_IDENTITIES` says how many (12), `INTERLOCK_IDENTITIES_SEED` by which seed calls fail (1).

#![allow(clippy::unwrap_used, reason = "this is a test")]
#![allow(clippy::print_stdout, reason = "a long test says how far it is")]

mod faults;
#[path = "../harness/mod.rs"]
mod harness;

use faults::Faults;
use harness::{Client, DataDirectory, Process, TOKEN, interlock, until, write_kubeconfig};
use interlock_api::identities::{TAG_FLEET, TAG_OWNER};
use interlock_identities::outside::At;
use interlock_identities::owner::Owner;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const FLEET: &str = "moto";
const NAMESPACES: usize = 5;
/// As many identities find a role and a policy of their name that somebody else made.
const FOREIGN: usize = 3;
/// How long calls fail while something is waited for.
const STORM: Duration = Duration::from_secs(20);
const PROVIDER: &str = "arn:aws:iam::123456789012:oidc-provider/issuer.example";

fn number(variable: &str, otherwise: usize) -> usize {
    std::env::var(variable).map_or(otherwise, |text| text.parse().expect("a number"))
}

/// The folder with boto3 and moto.
fn packages() -> PathBuf {
    let folder = std::env::var_os("INTERLOCK_MOTO");
    folder
        .map(PathBuf::from)
        .expect("INTERLOCK_MOTO names the folder of Python packages: cargo xtask test-real")
}

/// moto's server; it ends with this.
struct Moto {
    server: Child,
    address: SocketAddr,
}

impl Moto {
    fn start() -> Moto {
        let mut server = Command::new("python3")
            .args(["-m", "moto.server", "-H", "127.0.0.1", "-p", "0"])
            .env("PYTHONPATH", packages())
            .env("PYTHONUNBUFFERED", "1")
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(server.stderr.take().unwrap()).lines().map_while(Result::ok);
        let address = lines.find_map(|line| line.split("http://").nth(1).map(str::to_owned));
        // Whoever does not read what it says would stop it in the end.
        std::thread::spawn(move || lines.for_each(drop));
        let address = address.expect("moto says where it listens");
        Moto { server, address: address.trim().parse().unwrap() }
    }

    /// What boto3 finds, or changes.
    fn account(&self, words: &[&str], more: &[(&str, String)]) -> Value {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/with_moto/account.py");
        let output = Command::new("python3")
            .arg(script)
            .args(words)
            .env("PYTHONPATH", packages())
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .env("SERVER", format!("http://{}", self.address))
            .envs(more.iter().cloned())
            .stderr(Stdio::inherit())
            .output()
            .unwrap();
        assert!(output.status.success(), "{words:?}");
        serde_json::from_slice(&output.stdout).unwrap_or(Value::Null)
    }
}

impl Drop for Moto {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

/// The hub, two processes with its controllers, and the cloud.
struct Scene {
    moto: Moto,
    proxy: Faults,
    hub: Process,
    controllers: Vec<Child>,
    started: usize,
    place: DataDirectory,
}

impl Scene {
    fn start(seed: u64) -> Scene {
        let moto = Moto::start();
        let proxy = Faults::start(moto.address, seed);
        let place = DataDirectory::new();
        let hub = place.start();
        write_kubeconfig(&place.path("config"), &hub.address().to_string(), TOKEN);
        let mut scene = Scene { moto, proxy, hub, controllers: Vec::new(), started: 0, place };
        scene.start_controllers();
        scene.start_controllers();
        scene
    }

    fn start_controllers(&mut self) {
        self.started += 1;
        let log = File::create(self.place.path(&format!("controllers-{}.log", self.started)));
        let mut command = interlock();
        command.arg("controllers").arg("--kubeconfig").arg(self.place.path("config"));
        command.args(["--lease", "1s", "--metrics-listen", "127.0.0.1:0", "--fleet", FLEET]);
        command.args(["--iam-endpoint", &format!("http://{}", self.proxy.address())]);
        command.args(["--oidc-provider-arn", PROVIDER, "--late-call-window", "8s"]);
        command.args(["--resync", "10s", "--iam-calls-per-second", "200"]);
        command.env("AWS_ACCESS_KEY_ID", "AKIAROOT").env("AWS_SECRET_ACCESS_KEY", "root's secret");
        command.env_remove("KUBECONFIG").env_remove("RUST_LOG").env("NO_COLOR", "1");
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log.unwrap());
        self.controllers.push(command.spawn().unwrap());
    }

    /// Takes the life of one of the two processes, and starts another.
    fn kill_one(&mut self) {
        let mut one = self.controllers.remove(0);
        one.kill().unwrap();
        one.wait().unwrap();
        self.start_controllers();
    }

    fn client(&self) -> Client {
        self.hub.client()
    }

    fn make(&self, path: &str, object: &Value) {
        until(&format!("{path} can be made"), || {
            let made =
                self.client().call("POST", path, Some(object)).map_err(|why| why.to_string())?;
            if made.status == 201 || made.status == 409 { Ok(()) } else { Err(made.text) }
        });
    }

    fn change(&self, path: &str, patch: &Value) {
        let changed = self.client().call("PATCH", path, Some(patch)).unwrap();
        assert_eq!(changed.status, 200, "{}", changed.text);
    }

    fn all(&self) -> BTreeMap<String, Value> {
        let answer = self.client().call("GET", &format!("{GROUP}/iamroleserviceaccounts"), None);
        let list = answer.unwrap().json();
        let items = list["items"].as_array().cloned().unwrap_or_default();
        let key = |item: &Value| {
            let text = |field: &str| item["metadata"][field].as_str().unwrap().to_owned();
            format!("{}/{}", text("namespace"), text("name"))
        };
        items.into_iter().map(|item| (key(&item), item)).collect()
    }

    /// Waits until something is so. Calls fail for a while, and then not any more: a step of many requests would
    /// seldom come to its end, and its back-off is up to five minutes.
    fn until(&self, what: &str, mut look: impl FnMut() -> Result<(), String>) {
        let began = Instant::now();
        self.proxy.set_calm(false);
        until(what, || {
            self.proxy.set_calm(began.elapsed() > STORM);
            look()
        });
        self.proxy.set_calm(false);
    }

    /// Waits until each identity is as declared, or has the conflict that somebody else has its name.
    fn settle(&self, what: &str) {
        let began = Instant::now();
        self.until(what, || {
            let not_yet = |(name, item): (&String, &Value)| {
                let ready = condition(item, "Ready");
                let is_current =
                    item["status"]["observedGeneration"] == item["metadata"]["generation"];
                let wanted = if is_foreign(name) { "Conflict" } else { "AsDeclared" };
                let is_right = is_current && ready["reason"] == wanted;
                (!is_right).then(|| format!("{name}: {} {}", ready["reason"], ready["message"]))
            };
            let all = self.all();
            let waiting: Vec<String> = all.iter().filter_map(not_yet).collect();
            let shown: Vec<&String> = waiting.iter().take(5).collect();
            if waiting.is_empty() { Ok(()) } else { Err(format!("{}: {shown:#?}", waiting.len())) }
        });
        println!("{what}: {:.1?}", began.elapsed());
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        for child in &mut self.controllers {
            let _ = child.kill();
            let _ = child.wait();
        }
        if std::thread::panicking() {
            for one in 1..=self.started {
                let log = self.place.path(&format!("controllers-{one}.log"));
                let text = std::fs::read_to_string(log).unwrap_or_default();
                let last: Vec<&str> = text.lines().rev().take(30).collect();
                println!(
                    "controllers {one}:\n{}",
                    last.into_iter().rev().collect::<Vec<_>>().join("\n")
                );
            }
        }
    }
}

const GROUP: &str = "/apis/irsa.voodoo.io/v1alpha1";

fn condition<'a>(object: &'a Value, kind: &str) -> &'a Value {
    let all = object["status"]["conditions"].as_array();
    all.and_then(|all| all.iter().find(|one| one["type"] == kind)).unwrap_or(&Value::Null)
}

fn is_foreign(name: &str) -> bool {
    name.contains("/foreign-")
}

/// An identity as irsa-operator's users write it.
fn identity(namespace: &str, name: &str, action: &str) -> Value {
    json!({"apiVersion": "irsa.voodoo.io/v1alpha1", "kind": "IamRoleServiceAccount",
        "metadata": {"namespace": namespace, "name": name},
        "spec": {"policy": {"statement": [{"resource": format!("arn:aws:s3:::{namespace}-{name}"), "action": [action]}]}}})
}

fn place_of(name: &str) -> (&str, &str) {
    name.split_once('/').unwrap()
}

/// What the cloud object of an identity is called.
fn cloud_name(name: &str) -> String {
    let (namespace, name) = place_of(name);
    let (namespace, name) = (namespace.to_owned(), name.to_owned());
    let owner =
        Owner { uid: String::new(), kind: "role", fleet: FLEET.to_owned(), namespace, name };
    let At::Name { name, .. } = owner.at() else { panic!("it has a name") };
    name
}

#[test]
#[ignore = "needs moto: cargo xtask test-real"]
fn identities_become_as_declared_and_leave_nothing_under_faults_and_kills() {
    let (many, seed) = (number("INTERLOCK_IDENTITIES", 12), number("INTERLOCK_IDENTITIES_SEED", 1));
    let mut scene = Scene::start(seed as u64);
    let mut names: Vec<String> =
        (0..many).map(|at| format!("ns-{}/app-{at}", at % NAMESPACES)).collect();
    let foreign: Vec<String> = (0..FOREIGN).map(|at| format!("ns-{at}/foreign-{at}")).collect();
    let theirs: Vec<String> = foreign.iter().map(|name| cloud_name(name)).collect();
    let folder = format!("/interlock/{FLEET}/");
    scene.moto.account(&["foreign"], &[("NAMES", theirs.join(",")), ("FOLDER", folder)]);
    let before = scene.moto.account(&[], &[]);
    names.extend(foreign);

    for namespace in 0..NAMESPACES {
        scene.make("/api/v1/namespaces", &json!({"metadata": {"name": format!("ns-{namespace}")}}));
    }
    for (at, name) in names.iter().enumerate() {
        let (namespace, short) = place_of(name);
        let path = format!("{GROUP}/namespaces/{namespace}/iamroleserviceaccounts");
        scene.make(&path, &identity(namespace, short, "s3:Get0"));
        if at == many / 2 {
            scene.kill_one();
        }
    }
    scene.settle("created");

    // Past the limit of five versions.
    for round in 1..=7 {
        for name in &names {
            let (namespace, short) = place_of(name);
            let path = format!("{GROUP}/namespaces/{namespace}/iamroleserviceaccounts/{short}");
            let whole = identity(namespace, short, &format!("s3:Get{round}"));
            scene.change(&path, &json!({"spec": whole["spec"]}));
        }
        match round {
            2 | 5 => scene.kill_one(),
            3 | 7 => scene.settle(&format!("updated {round} times")),
            _ => {}
        }
    }
    let was: BTreeMap<String, Value> = by_name(&scene.moto.account(&[], &[])["roles"]);

    scene.moto.account(&["drift"], &[("SEED", seed.to_string())]);
    scene.kill_one();
    let expected = many;
    scene.until("drift is repaired", || {
        is_as_declared(&scene.moto.account(&[], &[]), &was, expected)
    });
    scene.settle("drifted and repaired");

    for (at, name) in names.iter().enumerate() {
        let (namespace, short) = place_of(name);
        let path = format!("{GROUP}/namespaces/{namespace}/iamroleserviceaccounts/{short}");
        let deleted = scene.client().call("DELETE", &path, None).unwrap();
        assert_eq!(deleted.status, 200, "{}", deleted.text);
        if at == many / 3 {
            scene.kill_one();
        }
    }
    scene.until("everything is gone", || {
        let left: Vec<String> = scene.all().into_keys().collect();
        if left.is_empty() {
            Ok(())
        } else {
            Err(format!("{} left: {:?}", left.len(), left.iter().take(5)))
        }
    });
    // A call that was still under way would land by now.
    std::thread::sleep(Duration::from_secs(4));
    assert_eq!(scene.moto.account(&[], &[]), before, "only what others made is left, as it was");
    let calls = scene.proxy.calls();
    let is_write = |call: &&String| !call.contains("Action=Get") && !call.contains("Action=List");
    let writes: Vec<&String> = calls.iter().filter(is_write).collect();
    for name in &theirs {
        let touched = writes.iter().find(|call| call.contains(name.as_str()));
        assert_eq!(touched, None, "no call changes what is not ours");
    }
    println!("{many} identities, {} calls, of which {} writes", calls.len(), writes.len());
}

fn by_name(things: &Value) -> BTreeMap<String, Value> {
    let things = things.as_array().cloned().unwrap_or_default();
    things.into_iter().map(|thing| (thing["name"].as_str().unwrap().to_owned(), thing)).collect()
}

/// Whether each role is as it was, and each policy says what was declared last.
fn is_as_declared(
    account: &Value,
    was: &BTreeMap<String, Value>,
    many: usize,
) -> Result<(), String> {
    let roles = by_name(&account["roles"]);
    for (name, role) in &roles {
        if was.get(name) != Some(role) {
            return Err(format!("role {name} is {role}, was {:?}", was.get(name)));
        }
    }
    let mut ours = 0;
    for policy in account["policies"].as_array().into_iter().flatten() {
        // Those of others have no tags at all.
        if policy["tags"].as_object().is_none_or(serde_json::Map::is_empty) {
            continue;
        }
        ours += 1;
        let default = policy["default"].as_str().unwrap_or_default();
        let statement = &policy["versions"][default]["Statement"][0];
        let tags = &policy["tags"];
        if statement["Action"] != json!(["s3:Get7"])
            || tags[TAG_FLEET] != FLEET
            || tags[TAG_OWNER].is_null()
        {
            return Err(format!("{policy}"));
        }
    }
    if ours == many { Ok(()) } else { Err(format!("{ours} policies of {many}")) }
}
