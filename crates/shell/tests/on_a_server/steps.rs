//! Single steps, without any task in the background: the test decides when news comes.

use crate::line::line;
use crate::mirror::{CONFIG_MAP, Mirror, SECRET};
use crate::{config_maps, is_mirrored, make_original, server, set_value};
use interlock_kernel::{
    Address, Controller, DryRun, LiveReads, Name, Nothing, Object, Part, Place, Read, Selector,
    Step, Subject, View, Watch, Watcher, Write,
};
use interlock_shell::faults::{Fault, Faults, Point, Seam};
use interlock_shell::{
    Ended, MOST_ROUNDS, News, NoDriver, Outcome, Places, Server, Wiring, perform, read_live,
    step_once,
};
use serde_json::json;

async fn news(hub: &Server) {
    for kind in [&CONFIG_MAP, &SECRET] {
        hub.open(&Watch::all(Place::HUB, kind));
        hub.list_once(kind).await.expect("it can be listed");
    }
}

fn wired(hub: &Server) -> Wiring<Mirror, NoDriver> {
    let places = [(Place::HUB, hub.clone())].into();
    Wiring::new(Mirror::default(), places, NoDriver)
}

fn acted(ended: &Ended) -> Option<News> {
    match ended {
        Ended::Acted { news, .. } => Some(*news),
        _ => None,
    }
}

#[tokio::test]
async fn a_step_on_old_news_has_a_write_conflict_and_the_next_one_has_none() {
    let (client, _) = line(&server().await);
    make_original(&client, "a", "yes").await;
    let hub = Server::new("hub", client.clone());
    let (wiring, a) = (wired(&hub), Subject::from("default/a"));
    news(&hub).await;
    assert_eq!(acted(&step_once(&wiring, &a).await), Some(News::Coming));
    // The copy was made, and the cache does not show it yet.
    assert_eq!(step_once(&wiring, &a).await, Ended::WriteConflict(Outcome::Exists));
    news(&hub).await;
    // Our own patch is in the cache at once.
    assert_eq!(acted(&step_once(&wiring, &a).await), Some(News::Seen));
    set_value(&client, "a", "two").await;
    assert_eq!(step_once(&wiring, &a).await, Ended::WriteConflict(Outcome::Conflict));
    news(&hub).await;
    assert_eq!(acted(&step_once(&wiring, &a).await), Some(News::Seen));
    assert_eq!(acted(&step_once(&wiring, &a).await), Some(News::Seen));
    assert_eq!(step_once(&wiring, &a).await, Ended::Rests);
    assert!(is_mirrored(&client, "a", "two").await);
}

struct LoseReplies;

impl Faults for LoseReplies {
    fn after(&self, _: &Point<'_>) -> Fault {
        Fault::LoseReply
    }
}

#[tokio::test]
async fn after_a_lost_reply_the_cache_shows_what_was_done() {
    let (client, _) = line(&server().await);
    make_original(&client, "a", "yes").await;
    let hub = Server::new("hub", client.clone());
    let mut wiring = wired(&hub);
    wiring.seam = Seam::with(LoseReplies);
    let a = Subject::from("default/a");
    news(&hub).await;
    assert!(matches!(step_once(&wiring, &a).await, Ended::Unknown(_)));
    news(&hub).await;
    assert!(matches!(step_once(&wiring, &a).await, Ended::Unknown(_)));
    // It was a patch of what the cache has: no news is needed to see that it was done.
    assert!(matches!(step_once(&wiring, &a).await, Ended::Unknown(_)));
    assert_eq!(step_once(&wiring, &a).await, Ended::Rests);
    assert!(is_mirrored(&client, "a", "one").await);
    assert_eq!(wiring.seam.effects(), 3);
}

#[tokio::test]
async fn a_namesake_is_left_alone() {
    let (client, _) = line(&server().await);
    make_original(&client, "a", "no").await;
    let hub = Server::new("hub", client.clone());
    news(&hub).await;
    let name = Name::within("default", "a");
    let old = hub.cache(&CONFIG_MAP, &Selector::All).and_then(|cache| cache.objects().get(&name));
    let old = old.expect("it was listed");
    config_maps(&client).delete("a", &Default::default()).await.expect("it is deleted");
    make_original(&client, "a", "no").await;
    let change = json!({"data": {"value": "two"}});
    let patch = Write::patch(Place::HUB, &CONFIG_MAP, &old, change);
    assert_eq!(perform(&hub, &patch).await, Outcome::Conflict);
    let delete = Write::delete(Place::HUB, &CONFIG_MAP, &old);
    assert_eq!(perform(&hub, &delete).await, Outcome::Conflict);
    let address = Address::new(Place::HUB, &CONFIG_MAP, name);
    let two = json!({"data": {"value": "two"}});
    let apply = Write::apply(address.clone(), two.clone(), Some(&old));
    assert_eq!(perform(&hub, &apply).await, Outcome::Conflict);
    let a = config_maps(&client).get("a").await.expect("it is there");
    assert_eq!(a.data.expect("it has data")["value"], "one");
    let refused = Write::Create {
        address: Address::new(Place::HUB, &CONFIG_MAP, Name::within("default", "Not_A_Name")),
        object: json!({}),
    };
    assert!(matches!(perform(&hub, &refused).await, Outcome::Refused(_)));
    let apply = Write::apply(address, two, None);
    assert!(matches!(perform(&hub, &apply).await, Outcome::Done(Some(_))));
}

#[tokio::test]
async fn an_apply_says_whose_the_fields_are_and_what_it_rests_on() {
    let (client, _) = line(&server().await);
    make_original(&client, "a", "no").await;
    let hub = Server::new("hub", client.clone());
    let name = Name::within("default", "a");
    let address = Address::new(Place::HUB, &CONFIG_MAP, name);
    let apply = |value: &str, is_forced, resource_version| Write::Apply {
        address: address.clone(),
        part: Part::Main,
        object: json!({"data": {"value": value}}),
        manager: "its-syncer",
        is_forced,
        uid: None,
        resource_version,
    };
    let got = async || config_maps(&client).get("a").await.expect("it is there");
    // Who made it has the field, and keeps it unless it is taken by force.
    let refused = perform(&hub, &apply("two", false, None)).await;
    assert!(matches!(&refused, Outcome::Refused(why) if why.contains("conflict")), "{refused:?}");
    let before = got().await.metadata.resource_version;
    assert!(matches!(perform(&hub, &apply("two", true, None)).await, Outcome::Done(Some(_))));
    let taken = got().await;
    let managers = taken.metadata.managed_fields.expect("the server keeps them");
    assert!(managers.iter().any(|its| its.manager.as_deref() == Some("its-syncer")));
    assert_eq!(taken.data.expect("it has data")["value"], "two");
    assert_eq!(perform(&hub, &apply("three", true, before)).await, Outcome::Conflict);
    let now = got().await.metadata.resource_version;
    assert!(matches!(perform(&hub, &apply("three", true, now)).await, Outcome::Done(Some(_))));
}

#[tokio::test]
async fn a_dry_run_says_what_an_apply_would_make_and_makes_nothing() {
    let (client, _) = line(&server().await);
    make_original(&client, "a", "no").await;
    let hub = Server::new("hub", client.clone());
    let places: Places = [(Place::HUB, hub)].into();
    let named = |name: &str, is_forced| DryRun {
        address: Address::new(Place::HUB, &CONFIG_MAP, Name::within("default", name)),
        object: json!({"data": {"value": "two"}}),
        manager: "its-syncer",
        is_forced,
        uid: None,
        resource_version: None,
    };
    let is_stale = DryRun { resource_version: Some("1".to_owned()), ..named("a", true) };
    let mut reads = LiveReads::<Nothing>::default();
    let all = [named("a", true), named("a", false), named("b", false), named("No_Name", false)];
    let asked = all.iter().chain([&is_stale]).cloned().map(|it| Read::DryRun(Box::new(it)));
    read_live(&places, &NoDriver, asked.collect(), &mut reads).await.expect("it answers");
    let code = |it: &DryRun| reads.dry_runs[it].as_ref().err().map(|refusal| refusal.code);
    assert_eq!(all.each_ref().map(code), [None, Some(409), None, Some(422)]);
    assert_eq!(code(&is_stale), Some(409));
    let taken = reads.dry_runs[&all[0]].as_ref().expect("it would be taken");
    assert_eq!(taken.data["data"]["value"], "two");
    let there = config_maps(&client).get("a").await.expect("it is there");
    assert_eq!(there.data.expect("it has data")["value"], "one");
    assert!(config_maps(&client).get_opt("b").await.expect("it answers").is_none());
}

/// LiveReads at one object afresh, again and again.
struct Looker {
    times: usize,
}

impl Watcher for Looker {
    fn name(&self) -> &'static str {
        "test/looker"
    }
    fn watches(&self) -> Vec<Watch> {
        Vec::new()
    }
    fn subjects(&self, _: &Watch, _: &Object, _: &dyn View) -> Vec<Subject> {
        Vec::new()
    }
}

impl Controller for Looker {
    type Outside = Nothing;

    fn step(
        &self,
        subject: &Subject,
        _: &dyn View,
        live_reads: &LiveReads<Nothing>,
    ) -> Step<Nothing> {
        if live_reads.objects.len() == self.times {
            let found = live_reads.objects.values().filter(|object| object.is_some()).count();
            let listed = live_reads.lists.values().flatten();
            let named = |object: &&Object| object.metadata.name.as_deref() == Some(&**subject);
            assert_eq!((found, listed.filter(named).count()), (1, 1));
            return Step::rest("all was seen");
        }
        let name = match live_reads.objects.len() {
            0 => subject.to_string(),
            more => format!("not-there-{more}"),
        };
        let name = Name::within("default", &name);
        let namespace = Some("default".to_owned());
        Step::LiveRead {
            reads: vec![
                Read::Object(Address::new(Place::HUB, &CONFIG_MAP, name)),
                Read::List { place: Place::HUB, kind: CONFIG_MAP, namespace },
            ],
            because: "the cache is not enough".to_owned(),
        }
    }
}

#[tokio::test]
async fn a_step_may_read_live_so_many_times_and_no_more() {
    let (client, _) = line(&server().await);
    make_original(&client, "a", "no").await;
    let hub = Server::new("hub", client.clone());
    let read_live = async |times| {
        let places = [(Place::HUB, hub.clone())].into();
        step_once(&Wiring::new(Looker { times }, places, NoDriver), &Subject::from("a")).await
    };
    assert_eq!(read_live(1).await, Ended::Rests);
    assert_eq!(read_live(MOST_ROUNDS).await, Ended::Rests);
    assert!(matches!(read_live(MOST_ROUNDS + 1).await, Ended::Broken(_)));
}
