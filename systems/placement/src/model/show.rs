//! A state of the world, as TLA+ writes it.

use super::World;
use super::state::{Cluster, Seen, State, bit};
use crate::spec::hub::{show_bool, show_set, show_writes};
use crate::spec::name_of;

fn show_claims(claims: u8) -> String {
    show_set((0..u8::BITS).filter(|c| claims >> c & 1 == 1).map(|c| (c + 1).to_string()))
}

fn show_view(cluster: &Cluster) -> String {
    let Some(view) = cluster.view else { return "none".to_owned() };
    let seen = match view.seen {
        Seen::NotMine => "Other",
        Seen::Granted => "Granted",
        Seen::Revoking => "Revoking",
    };
    format!("[e |-> {}, ph |-> \"{seen}\"]", view.epoch)
}

impl World {
    pub(super) fn show(&self, state: &State) -> Vec<(&'static str, String)> {
        let mut shown = self.show_hub(state);
        shown.extend(self.show_clusters(state));
        let forces = |epochs: u8| {
            let asked = (1..=self.extent.epochs).filter(move |epoch| epochs & bit(*epoch) != 0);
            show_set(asked.map(|epoch| epoch.to_string()))
        };
        shown.extend([
            ("nw", state.written.to_string()),
            ("must", show_writes(state.must)),
            ("force", forces(state.forced)),
            ("answered", forces(state.answered)),
        ]);
        if self.faults.is_some() {
            shown.push(("wish", name_of(state.wish.into()).to_owned()));
            shown.push(("faults", state.faults.to_string()));
        }
        shown
    }

    fn show_hub(&self, state: &State) -> Vec<(&'static str, String)> {
        let owner = state.owner().map_or("none", name_of);
        let target = usize::from(state.target).checked_sub(1).map_or("none", name_of);
        let (pin, in_place) = state.pins();
        let hub = format!(
            "[o |-> {owner}, e |-> {}, ph |-> \"{:?}\", pin |-> {}, inPlace |-> {}, to |-> {target}]",
            state.epoch,
            state.phase(),
            show_writes(pin),
            show_claims(in_place),
        );
        let tenures = state.tenures.iter().take(state.epoch.into()).map(|tenure| {
            let last = tenure.last.iter().take(self.claims.into());
            format!(
                "[o |-> {}, filled |-> {}, img |-> {}, made |-> {}, last |-> <<{}>>]",
                name_of(tenure.owner.into()),
                show_claims(tenure.filled),
                show_writes(tenure.image),
                show_claims(tenure.made),
                last.map(|last| format!("\"{last:?}\"")).collect::<Vec<_>>().join(", "),
            )
        });
        vec![
            ("hub", hub),
            ("hist", format!("<<{}>>", tenures.collect::<Vec<_>>().join(", "))),
            ("listed", if state.all_listed { self.claims } else { 1 }.to_string()),
            ("held", show_claims(state.held)),
            ("kept", show_claims(state.kept)),
        ]
    }

    fn show_clusters(&self, state: &State) -> Vec<(&'static str, String)> {
        let each = |value: &dyn Fn(&Cluster) -> String| {
            let one = |c: usize| format!("{} :> {}", name_of(c), value(&state.clusters[c]));
            format!("({})", (0..self.extent.clusters).map(one).collect::<Vec<_>>().join(" @@ "))
        };
        let truth = |value: &dyn Fn(&Cluster) -> bool| each(&|c| show_bool(value(c)).to_owned());
        let running = |cluster: &Cluster| match cluster.running.lapsed {
            true => format!("\"{} before boot\"", cluster.running.epoch),
            false => cluster.running.epoch.to_string(),
        };
        let stages = |cluster: &Cluster| {
            let stages = cluster.stages.iter().take(self.claims.into());
            let stages = stages.map(|stage| format!("\"{stage:?}\"")).collect::<Vec<_>>();
            format!("<<{}>>", stages.join(", "))
        };
        vec![
            ("view", each(&show_view)),
            ("epoch", each(&|c| c.epoch.to_string())),
            ("rel", each(&|c| c.released.to_string())),
            ("running", each(&running)),
            ("ran", truth(&|c| c.ran)),
            ("permitting", truth(&|c| c.permitting)),
            ("closing", each(&|c| c.closing.to_string())),
            ("stage", each(&stages)),
            ("vol", each(&|c| show_writes(c.volume))),
            ("process", each(&|c| format!("\"{:?}\"", c.process))),
            ("pod", each(&|c| format!("\"{:?}\"", c.pod))),
            ("off", truth(&|c| c.off)),
            ("lost", truth(&|c| c.lost)),
            ("mark", each(&|c| format!("\"{:?}\"", c.mark))),
        ]
    }
}
