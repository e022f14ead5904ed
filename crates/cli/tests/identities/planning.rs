//! What somebody sees who points Interlock at an account: a plan first, that writes nothing; then the same, done.

use super::harness::{DataDirectory, Process, TOKEN, interlock, until, write_kubeconfig};
use super::up::{Up, example, identities};
use interlock_iam::client::NewRole;
use interlock_identities::outside::At;
use interlock_identities::owner::Owner;
use serde_json::{Value, json};
use std::io::Read;
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};

const FLEET: &str = "planned";
const PROVIDER: &str = "arn:aws:iam::000000000000:oidc-provider/hub.example.com";
const TRUST: &str = r#"{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Principal":{"AWS":"arn:aws:iam::000000000000:root"},"Action":"sts:AssumeRole"}]}"#;

/// A hub without controllers, and an account somewhere else.
struct Scene {
    hub: Process,
    place: DataDirectory,
    cloud: Up,
}

/// Controllers, which end with the test.
struct Controllers(Child);

impl Drop for Controllers {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// How a command ended.
struct Said {
    code: Option<i32>,
    out: String,
    errors: String,
}

impl Scene {
    fn make_namespace(&self) {
        let namespace = json!({"metadata": {"name": "shop"}});
        self.hub.client().must("POST", "/api/v1/namespaces", Some(&namespace));
    }

    fn start() -> Scene {
        let (cloud, place) = (Up::start(), DataDirectory::new());
        let hub = place.start();
        write_kubeconfig(&place.path("config"), &hub.address().to_string(), TOKEN);
        let scene = Scene { hub, place, cloud };
        // Their first start installs the kinds, and writes down the options.
        let controllers = scene.controllers("127.0.0.1:0");
        until("the options are written down", || match scene.get(&kept()) {
            Value::Null => Err("not there".to_owned()),
            found => Ok(found),
        });
        drop(controllers);
        scene
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = interlock();
        command.args(words).arg("--kubeconfig").arg(self.place.path("config"));
        command.envs(self.cloud.cloud_variables()).env_remove("KUBECONFIG");
        command.env_remove("RUST_LOG").env("NO_COLOR", "1").stdin(Stdio::null());
        command
    }

    fn options(&self) -> Vec<String> {
        let endpoint = self.cloud.reaching().pop().expect("the address of IAM");
        ["--fleet", FLEET, "--iam-endpoint", &endpoint, "--oidc-provider-arn", PROVIDER]
            .into_iter()
            .chain(["--late-call-window", "1s", "--resync", "1h", "--lease", "1s"])
            .map(str::to_owned)
            .collect()
    }

    fn controllers(&self, metrics: &str) -> Controllers {
        let mut command = self.command(&["controllers", "--metrics-listen", metrics]);
        command.args(self.options()).stdout(Stdio::null()).stderr(Stdio::null());
        Controllers(command.spawn().expect("the binary runs"))
    }

    fn run(&self, words: &[&str]) -> Said {
        let output = self.command(words).output().expect("the binary runs");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let (out, errors) = (text(&output.stdout), text(&output.stderr));
        Said { code: output.status.code(), out, errors }
    }

    fn get(&self, path: &str) -> Value {
        let answer = self.hub.client().call("GET", path, None).expect("the server answers");
        if answer.status == 200 { answer.json() } else { Value::Null }
    }

    /// Everything at the hub that the controllers write.
    fn at_the_hub(&self) -> Vec<Value> {
        let own = ["iamroleserviceaccounts", "policies", "roles"];
        let own = own.map(|plural| format!("{}/namespaces/shop/{plural}", super::up::KINDS));
        let core = ["serviceaccounts", "events"];
        let core = core.map(|plural| format!("/api/v1/namespaces/shop/{plural}"));
        let system = ["configmaps"].map(|it| format!("/api/v1/namespaces/interlock-system/{it}"));
        let paths = own.into_iter().chain(core).chain(system);
        paths.map(|path| self.get(&path)["items"].clone()).collect()
    }

    /// The names of all roles and policies that the account has.
    fn in_the_cloud(&self) -> Vec<String> {
        let iam = self.cloud.iam();
        let roles = self.cloud.done(iam.list_roles("/")).into_iter().map(|role| role.name);
        let policies = self.cloud.done(iam.list_policies("/")).into_iter().map(|it| it.name);
        roles.chain(policies).collect()
    }
}

fn kept() -> String {
    "/api/v1/namespaces/interlock-system/configmaps/interlock-identities".to_owned()
}

fn cloud_name(name: &str) -> String {
    let owner = Owner {
        uid: String::new(),
        kind: "role",
        fleet: FLEET.to_owned(),
        namespace: "shop".to_owned(),
        name: name.to_owned(),
    };
    let At::Name { name, .. } = owner.at() else { panic!("a place by name") };
    name
}

fn planned<'a>(plan: &'a Value, name: &str) -> &'a Value {
    let all = plan["identities"].as_array().expect("identities");
    all.iter().find(|it| it["identity"] == name).unwrap_or_else(|| panic!("{plan:#}"))
}

#[test]
fn a_plan_says_what_would_be_done_and_does_nothing_and_then_that_is_done() {
    let scene = Scene::start();
    scene.make_namespace();
    for name in ["new", "taken"] {
        scene.hub.client().must("POST", &identities("shop"), Some(&example(name)));
    }
    let path = format!("/interlock/{FLEET}/");
    let (name, trust) = (cloud_name("taken"), TRUST.to_owned());
    let other = NewRole { path, name, trust, ..NewRole::default() };
    scene.cloud.done(scene.cloud.iam().create_role(&other));
    let before = (scene.at_the_hub(), scene.in_the_cloud());

    let options = scene.options();
    let mut words = vec!["controllers", "--dry-run"];
    words.extend(options.iter().map(String::as_str));
    let said = scene.run(&words);
    assert_eq!(said.code, Some(1), "{}{}", said.out, said.errors);
    let row = said.out.lines().find(|line| line.starts_with("shop/new")).expect("a row");
    assert!(row.contains("create   CreatePolicy; CreateRole; AttachRolePolicy arn:aws:"), "{row}");
    assert!(row.contains("create ServiceAccount shop/new"), "{row}");
    let row = said.out.lines().find(|line| line.starts_with("shop/taken")).expect("a row");
    assert!(row.contains("stalled") && !row.contains("CreateRole"), "{row}");

    // The same for programs, with the options of the controllers.
    let said = scene.run(&["identity", "plan", "-o", "json"]);
    assert_eq!((said.code, said.errors.as_str()), (Some(1), ""), "{}", said.out);
    let plan: Value = serde_json::from_str(&said.out).expect("it is JSON");
    assert_eq!(plan["fleet"], FLEET);
    assert_eq!(planned(&plan, "shop/new")["verdict"], "create", "{plan:#}");
    assert_eq!(planned(&plan, "shop/taken")["reason"], "Conflict", "{plan:#}");
    let said = scene.run(&["identity", "plan", "shop/new"]);
    assert_eq!(said.code, Some(0), "{}{}", said.out, said.errors);
    let said = scene.run(&["identity", "plan", "shop/none"]);
    assert_eq!(said.code, Some(2), "{}{}", said.out, said.errors);
    assert_eq!(before, (scene.at_the_hub(), scene.in_the_cloud()), "nothing was written");

    // Then it is done, and nothing is left to plan.
    let controllers = scene.controllers("127.0.0.1:0");
    let path = format!("{}/new", identities("shop"));
    until("the identity is made", || match scene.get(&path)["status"]["condition"] == "created" {
        true => Ok(()),
        false => Err(format!("{:#}", scene.get(&path))),
    });
    drop(controllers);
    let said = scene.run(&["identity", "plan", "shop/new", "-o", "json"]);
    let plan: Value = serde_json::from_str(&said.out).expect("it is JSON");
    assert_eq!(planned(&plan, "shop/new")["verdict"], "nothing", "{plan:#}");
    assert_eq!(said.code, Some(0));
}

#[test]
fn a_plan_says_what_would_be_done_to_the_oidc_providers_of_clusters() {
    let scene = Scene::start();
    let group = super::up::GROUP;
    let secret = json!({"kubeconfigSecret": {"namespace": "default", "name": "none"}});
    for (name, issuer) in [("east", "east"), ("north", "shared"), ("west", "shared")] {
        let cluster = json!({"apiVersion": "interlock.dev/v1alpha1", "kind": "WorkloadCluster",
            "metadata": {"name": name}, "spec": {"connection": secret}});
        let client = &mut scene.hub.client();
        client.must("POST", &format!("{group}/workloadclusters"), Some(&cluster));
        let status = json!({"status": {"issuer": format!("https://{issuer}.example")}});
        client.must("PATCH", &format!("{group}/workloadclusters/{name}/status"), Some(&status));
    }
    let plan = |more: &[&str]| -> Value {
        let said = scene.run(&[&["identity", "plan", "-o", "json"], more].concat());
        assert_eq!(said.code, Some(0), "{}{}", said.out, said.errors);
        let plan: Value = serde_json::from_str(&said.out).expect("it is JSON");
        plan["providers"].clone()
    };
    let of = |providers: &Value, cluster: &str, field: &str| -> Value {
        let mut all = providers.as_array().expect("providers").iter();
        let found = all.find(|it| it["cluster"] == cluster);
        found.unwrap_or_else(|| panic!("{providers:#}"))[field].clone()
    };
    let checked = plan(&[]);
    assert_eq!(of(&checked, "east", "reason"), "NoProvider", "{checked:#}");
    assert_eq!(of(&checked, "east", "calls"), json!([]), "{checked:#}");
    let managed = plan(&["--oidc-providers", "manage"]);
    assert_eq!(of(&managed, "east", "verdict"), "create", "{managed:#}");
    assert_eq!(of(&managed, "east", "calls"), json!(["CreateOpenIDConnectProvider"]));
    for shared in ["north", "west"] {
        assert_eq!(of(&managed, shared, "verdict"), "stalled", "{managed:#}");
        assert_eq!(of(&managed, shared, "reason"), "IssuerShared", "{managed:#}");
    }
}

#[test]
fn who_looks_has_the_options_of_the_controllers_and_is_warned_of_others() {
    let scene = Scene::start();
    let kept = scene.get(&kept())["data"].clone();
    assert_eq!(kept["oidc-provider-arn"], PROVIDER, "{kept:#}");
    assert_eq!(kept["late-call-window"], "1s", "{kept:#}");
    let said = scene.run(&["identity", "orphans"]);
    assert_eq!((said.code, said.errors.as_str()), (Some(0), ""), "{}", said.out);
    let said = scene.run(&["identity", "orphans", "--adopt", "legacy"]);
    let warning = "warning: the controllers run with --adopt never, and this command with legacy\n";
    assert_eq!(said.errors, warning);
    let said = scene.run(&["identity", "orphans", "--fleet", "another"]);
    assert_eq!(said.code, Some(2), "{}{}", said.out, said.errors);
}

#[test]
fn calls_waits_and_standings_are_counted() {
    let scene = Scene::start();
    scene.make_namespace();
    let port = std::net::TcpListener::bind("127.0.0.1:0").expect("a port").local_addr();
    let address = port.expect("it is bound").to_string();
    let _controllers = scene.controllers(&address);
    scene.hub.client().must("POST", &identities("shop"), Some(&example("counted")));
    until("all is counted", || {
        use std::io::Write;
        let mut page = String::new();
        let asked = TcpStream::connect(&address).and_then(|mut stream| {
            stream.write_all(b"GET /metrics HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n")?;
            stream.read_to_string(&mut page)
        });
        let expected = [
            "interlock_cloud_calls_total{action=\"CreateRole\",result=\"done\"} 1",
            "interlock_cloud_calls_total{action=\"GetRole\",result=\"not_found\"}",
            "interlock_cloud_token_wait_seconds_count ",
            "interlock_cloud_calls_per_second 10",
            "interlock_identities_objects{kind=\"Role\",state=\"Ready\",reason=\"AsDeclared\"} 1",
            "interlock_shell_events_total{controller=\"identities/role\",reason=\"Changing\"} ",
        ];
        match (asked, expected.into_iter().find(|line| !page.contains(line))) {
            (Ok(_), None) => Ok(()),
            (asked, missing) => Err(format!("{asked:?}: {missing:?} is not in\n{page}")),
        }
    });
}
