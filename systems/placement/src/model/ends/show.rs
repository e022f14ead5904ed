//! A state of the world, as TLA+ writes it.

use super::World;
use super::state::{Bits, Copies, Grant, Here, Labels, State, View};
use crate::spec::hub::{show_bool, show_set};
use crate::spec::name_of;
use interlock_api::placement::CopyState;

fn show_clusters(bits: Bits) -> String {
    show_set((0..8).filter(|c| bits >> c & 1 == 1).map(|c| name_of(c).to_owned()))
}

fn show_epochs(bits: Bits) -> String {
    show_set((0..8).filter(|epoch| bits >> epoch & 1 == 1).map(|epoch| (epoch + 1).to_string()))
}

fn show_copies(copies: Copies) -> String {
    let all = [CopyState::Live, CopyState::Superseded, CopyState::Unclosed, CopyState::Diverged];
    show_set(
        all.into_iter().filter(|state| copies.has(*state)).map(|state| format!("\"{state:?}\"")),
    )
}

fn show_view(view: &Option<View>) -> String {
    match view {
        None => "none".to_owned(),
        Some(view) => format!(
            "[e |-> {}, ph |-> \"{:?}\", deletion |-> {}, filled |-> {}, copies |-> {}, settled |-> {}]",
            view.epoch,
            view.seen,
            show_bool(view.is_deletion),
            show_bool(view.is_filled),
            show_copies(view.copies),
            show_bool(view.is_settled),
        ),
    }
}

fn show_here(here: &Option<Here>) -> String {
    match here {
        None => "none".to_owned(),
        Some(here) => format!(
            "[e |-> {}, rel |-> {}, permit |-> {}, lapsed |-> {}, ran |-> {}, runs |-> {}, \
             of |-> {}, vols |-> {}, alone |-> {}]",
            here.epoch,
            here.released,
            here.permitted,
            show_bool(here.lapsed),
            show_bool(here.ran),
            here.runs,
            here.content + 1,
            show_epochs(here.volumes),
            show_epochs(here.alone),
        ),
    }
}

impl World {
    fn each(&self, value: impl Fn(usize) -> String) -> String {
        let one = |c: usize| format!("{} :> {}", name_of(c), value(c));
        format!("({})", (0..self.clusters).map(one).collect::<Vec<_>>().join(" @@ "))
    }

    /// One for each namespace.
    fn all(&self, value: impl Fn(usize) -> String) -> String {
        format!("<<{}>>", (0..self.namespaces).map(value).collect::<Vec<_>>().join(", "))
    }

    fn show_grant(&self, grant: &Grant) -> String {
        if !grant.exists {
            return "none".to_owned();
        }
        let owner = if grant.epoch == 0 { "none" } else { name_of(grant.owner.into()) };
        format!(
            "[o |-> {owner}, e |-> {}, ph |-> \"{:?}\", deletion |-> {}, filled |-> {}, copies |-> {}, \
             settled |-> {}, ever |-> {}, force |-> {}]",
            grant.epoch,
            grant.phase,
            show_bool(grant.is_deletion),
            show_bool(grant.is_filled),
            self.each(|c| show_copies(grant.copies[c])),
            show_bool(grant.is_settled),
            show_epochs(grant.settled),
            show_bool(grant.is_forced),
        )
    }

    pub(super) fn show(&self, state: &State) -> Vec<(&'static str, String)> {
        let namespace = &state.namespace;
        let labels = |labels: &Labels| self.each(|c| format!("\"{:?}\"", labels[c]));
        let mut shown = vec![
            (
                "namespace",
                format!(
                    "[n |-> {}, life |-> \"{:?}\", finalizer |-> {}, syncers |-> {}, looked |-> {}]",
                    namespace.place + 1,
                    namespace.life,
                    show_bool(namespace.finalizer),
                    show_clusters(namespace.syncers),
                    show_bool(namespace.looked),
                ),
            ),
            ("hub", self.all(|place| self.show_grant(&state.grants[place]))),
            (
                "clusters",
                self.each(|c| {
                    let it = &state.registered[c];
                    format!(
                        "[life |-> \"{:?}\", finalizer |-> {}, looked |-> {}, forget |-> {}]",
                        it.life,
                        show_bool(it.finalizer),
                        show_bool(it.looked),
                        it.forget,
                    )
                }),
            ),
            ("view", self.each(|c| self.all(|p| show_view(&state.machines[c].views[p])))),
            ("here", self.each(|c| self.all(|p| show_here(&state.machines[c].here[p])))),
            ("off", self.each(|c| show_bool(state.machines[c].off).to_owned())),
        ];
        if self.labels {
            shown.extend([("ns", labels(&state.ns)), ("pvc", labels(&state.pvc))]);
        }
        shown.extend([
            ("strippedNamespaces", show_epochs(state.stripped_namespaces)),
            ("strippedClusters", show_clusters(state.stripped_clusters)),
            ("forgotten", self.all(|place| show_clusters(state.forgotten[place]))),
            ("faults", state.faults.to_string()),
        ]);
        shown
    }
}
