//! Runners: from news to rest, on caches that are shared and outlive their connection.

use crate::line::line;
use crate::mirror::{CONFIG_MAP, Mirror, Noting};
use crate::{TIMEOUT, config_maps, is_mirrored, make_original, server, set_value, until};
use interlock_kernel::metadata::name_of;
use interlock_kernel::{
    Controller, LiveReads, Name, Nothing, Object, Place, Selector, Step, Subject, View, Watch,
    Watcher,
};
use interlock_shell::{Cache, NoDriver, Places, Server, Settings, Shell};
use k8s_openapi::api::events::v1::Event;
use kube::Api;
use kube::api::{ListParams, Patch, PatchParams, PostParams};
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

fn at_hub(server: &Server) -> [(Place, Server); 1] {
    [(Place::HUB, server.clone())]
}

#[tokio::test]
async fn a_controller_runs_until_there_is_nothing_left_to_do() {
    let (client, _) = line(&server().await);
    for number in 0..20 {
        make_original(&client, &format!("before-{number}"), "yes").await;
    }
    let hub = Server::new("hub", client.clone());
    let (shell, mirror) = (Shell::default(), Mirror::default());
    let steps = mirror.steps.clone();
    let runner = shell.run(mirror, at_hub(&hub), NoDriver).expect("it is wired");
    make_original(&client, "after", "yes").await;
    for name in (0..20).map(|number| format!("before-{number}")).chain(["after".to_owned()]) {
        until("mirrored", || is_mirrored(&client, &name, "one")).await;
    }
    until("at rest", async || runner.is_resting()).await;
    // Three effects for each and a look or two after them: it does not run in circles.
    assert!(steps.load(Ordering::SeqCst) < 21 * 3 * 4);
    let metrics = shell.metrics();
    let text = metrics.render();
    assert!(text.contains("steps_total{controller=\"test/mirror\",end=\"done\"} 63"), "{text}");
    assert!(text.contains("cache_objects{server=\"hub\",kind=\"ConfigMap\""), "{text}");
    shell.stop().await;
    assert!(runner.is_over());
}

#[tokio::test]
async fn who_has_nothing_to_do_after_a_write_has_its_next_turn_when_the_time_has_passed() {
    for (at_most, turns) in [(Duration::from_secs(3_600), 1), (Duration::from_millis(20), 2)] {
        let (client, _) = line(&server().await);
        let hub = Server::new("hub", client.clone());
        let shell = Shell::default();
        let noting = Noting { steps: Arc::default(), at_most };
        let steps = noting.steps.clone();
        let _runner = shell.run(noting, at_hub(&hub), NoDriver).expect("it is wired");
        let names = ["a", "b", "c"];
        for (number, name) in names.into_iter().enumerate() {
            make_original(&client, name, "yes").await;
            // The news of the one before has come before this one is noted.
            until("noted", async || {
                let seen = config_maps(&client).get(name).await.expect("it is there");
                seen.metadata.annotations.unwrap_or_default().contains_key("noted")
            })
            .await;
            until("a turn", async || steps.load(Ordering::SeqCst) >= turns * (number + 1)).await;
        }
        assert_eq!(steps.load(Ordering::SeqCst), turns * names.len());
        shell.stop().await;
    }
}

#[tokio::test]
async fn a_watch_that_nobody_looks_at_any_more_is_let_go_and_may_be_followed_again() {
    let (client, _) = line(&server().await);
    make_original(&client, "a", "yes").await;
    let (hub, named) = (Server::new("hub", client), Selector::Named("a".into()));
    let watch = Watch::all(Place::HUB, &CONFIG_MAP).only(named.clone());
    let cache = hub.follow(&watch);
    cache.filled().await;
    assert!(!hub.let_go(&CONFIG_MAP, &named), "somebody looks at it");
    drop(cache);
    assert!(hub.let_go(&CONFIG_MAP, &named));
    assert!(hub.caches().is_empty());
    let again = hub.follow(&watch);
    again.filled().await;
    assert_eq!(again.objects().len(), 1);
}

#[tokio::test]
async fn nothing_runs_before_all_caches_are_filled() {
    let (client, trouble) = line(&server().await);
    make_original(&client, "a", "yes").await;
    trouble.held.send_replace(Some("secrets"));
    let hub = Server::new("hub", client.clone());
    let (shell, mirror) = (Shell::default(), Mirror::default());
    let steps = mirror.steps.clone();
    let runner = shell.run(mirror, at_hub(&hub), NoDriver).expect("it is wired");
    let cache = hub.open(&Watch::all(Place::HUB, &CONFIG_MAP));
    cache.filled().await;
    // News of a cache that is filled is no reason to run while another is not.
    make_original(&client, "b", "yes").await;
    until("seen", async || cache.objects().get(&Name::within("default", "b")).is_some()).await;
    assert!(!runner.is_ready());
    assert_eq!(steps.load(Ordering::SeqCst), 0);
    trouble.held.send_replace(None);
    until("mirrored", || is_mirrored(&client, "a", "one")).await;
    until("mirrored", || is_mirrored(&client, "b", "one")).await;
    shell.stop().await;
}

#[tokio::test]
async fn two_controllers_share_one_watch_for_each_kind() {
    let (client, trouble) = line(&server().await);
    make_original(&client, "a", "yes").await;
    let hub = Server::new("hub", client.clone());
    let shell = Shell::default();
    let (one, other) = (Mirror::default(), Mirror::default());
    let runners = [
        shell.run(one, at_hub(&hub), NoDriver).expect("it is wired"),
        shell.run(other, at_hub(&hub), NoDriver).expect("it is wired"),
    ];
    until("mirrored", || is_mirrored(&client, "a", "one")).await;
    until("at rest", async || runners.iter().all(|runner| runner.is_resting())).await;
    until("watched", async || trouble.watches.load(Ordering::SeqCst) >= 2).await;
    assert_eq!(trouble.watches.load(Ordering::SeqCst), 2, "one of ConfigMaps, one of Secrets");
    assert_eq!(trouble.lists.load(Ordering::SeqCst), 2);
    shell.stop().await;
}

#[tokio::test]
async fn a_lost_connection_takes_nothing_out_of_the_cache() {
    let server = server().await;
    let (admin, _) = line(&server);
    let (client, trouble) = line(&server);
    make_original(&admin, "a", "no").await;
    let hub = Server::new("hub", client);
    let cache = hub.follow(&Watch::all(Place::HUB, &CONFIG_MAP));
    cache.filled().await;
    let watches = trouble.watches.load(Ordering::SeqCst);
    let has = |name: &str| cache.objects().get(&Name::within("default", name)).is_some();
    until("watched", async || trouble.watches.load(Ordering::SeqCst) > 0).await;
    trouble.take_down();
    config_maps(&admin).delete("a", &Default::default()).await.expect("it is deleted");
    make_original(&admin, "b", "no").await;
    assert!(has("a") && !has("b"));
    trouble.repair();
    until("b has come", async || has("b")).await;
    assert!(!has("a"), "the server said that it went");
    assert!(trouble.watches.load(Ordering::SeqCst) > watches);
    assert_eq!(trouble.lists.load(Ordering::SeqCst), 1, "the watch went on where it was");
}

#[tokio::test]
async fn a_watch_with_a_selector_is_not_shown_the_others() {
    let (client, _) = line(&server().await);
    make_original(&client, "ours", "yes").await;
    let without = serde_json::from_value(json!({"metadata": {"name": "theirs"}}));
    let without = without.expect("a ConfigMap");
    config_maps(&client).create(&PostParams::default(), &without).await.expect("it is made");
    let hub = Server::new("hub", client.clone());
    let all = Watch::all(Place::HUB, &CONFIG_MAP);
    let labelled = hub.follow(&all.clone().only(Selector::labelled("mirror")));
    let named = hub.follow(&all.clone().only(Selector::Named("theirs".into())));
    labelled.filled().await;
    named.filled().await;
    let names = |cache: &Cache| -> Vec<String> {
        cache.objects().names().map(|name| name.name.to_string()).collect()
    };
    assert_eq!((names(&labelled), names(&named)), (vec!["ours".into()], vec!["theirs".into()]));
    // Whoever looks at the whole kind has a cache of its own, which others share from then on.
    let whole = hub.follow(&all);
    whole.filled().await;
    assert!(names(&whole).len() > names(&labelled).len());
    let late = hub.follow(&all.only(Selector::labelled("late")));
    assert!(Arc::ptr_eq(&late, &whole));
    let take_off = Patch::Merge(json!({"metadata": {"labels": {"mirror": null}}}));
    let params = PatchParams::default();
    config_maps(&client).patch("ours", &params, &take_off).await.expect("it is changed");
    until("it is not selected any more", async || labelled.objects().is_empty()).await;
    assert!(names(&whole).contains(&"ours".to_owned()));
}

#[tokio::test]
async fn a_watch_that_is_too_far_behind_lists_again() {
    let server = server().await;
    let (admin, _) = line(&server);
    let (client, trouble) = line(&server);
    make_original(&admin, "a", "no").await;
    let hub = Server::new("hub", client);
    let cache = hub.follow(&Watch::all(Place::HUB, &CONFIG_MAP));
    cache.filled().await;
    until("watched", async || trouble.watches.load(Ordering::SeqCst) > 0).await;
    trouble.is_too_old.store(true, Ordering::SeqCst);
    trouble.take_down();
    config_maps(&admin).delete("a", &Default::default()).await.expect("it is deleted");
    let has = |name: &str| cache.objects().get(&Name::within("default", name)).is_some();
    assert!(has("a"));
    trouble.repair();
    until("a has gone", async || !has("a")).await;
    assert_eq!(trouble.lists.load(Ordering::SeqCst), 2);
}

/// Counts its turns, and wakes its subjects itself or leaves it to the shell.
#[derive(Clone, Default)]
struct Counter {
    turns: Arc<AtomicU64>,
    waits: Option<Duration>,
}

impl Watcher for Counter {
    fn name(&self) -> &'static str {
        "test/counter"
    }

    fn watches(&self) -> Vec<Watch> {
        vec![Watch::all(Place::HUB, &CONFIG_MAP).only(Selector::labelled("mirror"))]
    }

    fn subjects(&self, _: &Watch, object: &Object, _: &dyn View) -> Vec<Subject> {
        vec![Subject::from(name_of(object))]
    }

    fn resync(&self) -> Option<Duration> {
        self.waits
    }
}

impl Controller for Counter {
    type Outside = Nothing;

    fn step(&self, _: &Subject, _: &dyn View, _: &LiveReads<Nothing>) -> Step<Nothing> {
        self.turns.fetch_add(1, Ordering::SeqCst);
        match self.waits {
            Some(at_most) => Step::Wait { at_most, because: "it is compared then".to_owned() },
            None => Step::rest("nothing to do"),
        }
    }
}

#[tokio::test]
async fn subjects_have_a_turn_now_and_then_unless_their_controller_wakes_them_itself() {
    let (client, _) = line(&server().await);
    make_original(&client, "a", "yes").await;
    let hub = Server::new("hub", client.clone());
    let often = Settings { resync: Duration::from_millis(20), ..Settings::default() };
    let shell = Shell::new(often);
    let asks = Counter { waits: Some(Duration::from_secs(3_600)), ..Counter::default() };
    let leaves = Counter::default();
    let _asks = shell.run(asks.clone(), at_hub(&hub), NoDriver).expect("it is wired");
    let _leaves = shell.run(leaves.clone(), at_hub(&hub), NoDriver).expect("it is wired");
    let turns = |of: &Counter| of.turns.load(Ordering::SeqCst);
    until("turns", async || turns(&leaves) > 10 && turns(&asks) > 0).await;
    assert_eq!(turns(&asks), 1);
    shell.stop().await;
}

#[tokio::test]
async fn a_step_that_panics_hurts_only_its_subject() {
    let (client, _) = line(&server().await);
    make_original(&client, "bad", "panic").await;
    make_original(&client, "good", "yes").await;
    let hub = Server::new("hub", client.clone());
    let shell = Shell::new(Settings { workers: 1, ..Settings::default() });
    let runner = shell.run(Mirror::default(), at_hub(&hub), NoDriver).expect("it is wired");
    until("mirrored", || is_mirrored(&client, "good", "one")).await;
    let text = || shell.metrics().render();
    let is_broken = "steps_total{controller=\"test/mirror\",end=\"broken\"} ";
    until("tried again", async || {
        let text = text();
        let count = text.split(is_broken).nth(1).and_then(|rest| rest.lines().next());
        count.and_then(|count| count.parse::<u64>().ok()).is_some_and(|count| count >= 2)
    })
    .await;
    assert!(!runner.is_over());
    shell.stop().await;
}

#[tokio::test]
async fn what_is_reported_again_is_counted_on_the_same_event() {
    let (client, _) = line(&server().await);
    make_original(&client, "a", "yes").await;
    let hub = Server::new("hub", client.clone());
    let shell = Shell::default();
    let _runner = shell.run(Mirror::default(), at_hub(&hub), NoDriver).expect("it is wired");
    for value in ["one", "two", "three"] {
        set_value(&client, "a", value).await;
        until("mirrored", || is_mirrored(&client, "a", value)).await;
    }
    let events: Api<Event> = Api::namespaced(client.clone(), "default");
    until("one event, counted", async || {
        let events = events.list(&ListParams::default()).await.expect("it answers").items;
        let told: Vec<_> =
            events.iter().filter(|event| event.reason.as_deref() == Some("Copied")).collect();
        assert!(told.len() <= 1, "{told:?}");
        told.iter().any(|event| event.series.as_ref().is_some_and(|series| series.count == 3))
    })
    .await;
    shell.stop().await;
}

#[tokio::test]
async fn a_controller_without_a_server_for_its_place_is_not_run() {
    let shell = Shell::default();
    let refused = shell
        .run(Mirror::default(), Places::default(), NoDriver)
        .expect_err("nothing plays the hub");
    assert_eq!(
        refused.to_string(),
        "test/mirror watches the hub, and no API server is configured for it"
    );
    tokio::time::timeout(TIMEOUT, shell.stop()).await.expect("nothing runs");
}
