//! What goes wrong at the moments that matter: right after the record, the fence or an object was written.

use super::Updates;
use crate::engine::{Broken, Engine};

/// How seldom something goes wrong at such a moment: once in so many times for each thing that can.
const SELDOM: usize = 30;
/// For how many events everybody else may make haste.
const HASTE: usize = 24;

impl Engine<Updates> {
    /// A program has done something; it may be what others rest on.
    pub(crate) async fn moment(&mut self, instance: u64, actions: &[String]) -> Result<(), Broken> {
        let weighs = |action: &String| {
            action.contains("patch the status of ClusterRollout") || action.contains("ConfigMap")
        };
        if !self.is_trouble || !actions.iter().any(weighs) {
            return Ok(());
        }
        let place = self.actors.iter().position(|actor| actor.instance == instance);
        let Some(place) = place else { return Ok(()) };
        self.check().await?;
        let what = self.chance.below(SELDOM);
        self.counts.moments += u64::from(what < 3);
        match what {
            0 => self.die(place).await,
            1 => self.falls_behind(place).await,
            2 => {
                self.falls_behind(place).await?;
                self.somebody_asks().await
            }
            _ => Ok(()),
        }
    }

    /// Another instance is started beside a program, which is stopped, or hears nothing any more, or nothing of one kind.
    pub(crate) async fn falls_behind(&mut self, place: usize) -> Result<(), Broken> {
        let Some(cluster) = self.actors.get(place).map(|actor| actor.cluster) else {
            return Ok(());
        };
        self.start_program(cluster).await?;
        let until = self.for_a_while();
        let mut actor = self.actors.remove(place);
        let what = match self.chance.below(4) {
            0 => {
                actor.stopped_until = until;
                self.turn_deaf(&mut actor, until, |_| true);
                "is stopped for a while, and goes on with what it knew"
            }
            1 => {
                self.turn_deaf(&mut actor, until, |_| true);
                self.haste = (self.happened + HASTE as u64, actor.instance);
                "hears no news for a while, and is outrun"
            }
            _ => {
                let kind = self.chance.one_of(&actor.caches).map(|cache| cache.kind.clone());
                self.turn_deaf(&mut actor, until, |cache| Some(&cache.kind) == kind.as_ref());
                "hears no news of one kind for a while"
            }
        };
        let event = format!("{} {what}", actor.name);
        self.actors.insert(place, actor);
        self.note(event);
        Ok(())
    }
}
