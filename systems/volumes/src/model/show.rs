//! A state as TLA+ would print it.

use super::World;
use super::state::{Claim, Image, State, Volume};

fn image_name(image: Option<u8>) -> String {
    image.map_or_else(|| "nil".to_owned(), |image| format!("s{}", image + 1))
}

fn truth(value: bool) -> &'static str {
    if value { "TRUE" } else { "FALSE" }
}

impl World {
    fn of_claims(&self, set: u8) -> String {
        let claims = (0..self.claims).filter(|p| set >> p & 1 == 1);
        let names: Vec<_> = claims.map(|p| format!("p{}", p + 1)).collect();
        format!("{{{}}}", names.join(", "))
    }

    fn show_image(&self, image: &Image) -> String {
        format!(
            "[st |-> \"{:?}\", hand |-> {}, fin |-> {}, primes |-> {}, touched |-> {}]",
            image.stage,
            truth(image.by_hand),
            self.of_claims(image.holds),
            self.of_claims(image.primes),
            self.of_claims(image.touched)
        )
    }

    pub(super) fn show(&self, state: &State) -> Vec<(&'static str, String)> {
        let listed = |items: Vec<String>| format!("<<{}>>", items.join(", "));
        let images = state.images.iter().take(self.images).map(|image| self.show_image(image));
        let claims = state.claims.iter().take(self.claims);
        let primes = claims.clone().map(show_prime);
        let volumes = state
            .volumes
            .iter()
            .take(self.claims)
            .map(|volumes| listed(volumes.iter().map(show_volume).collect()));
        let published = (0..self.images as u8).filter(|i| state.published >> i & 1 == 1);
        let published: Vec<_> = published.map(|i| image_name(Some(i))).collect();
        let flight = state.flight.map_or_else(
            || "nil".to_owned(),
            |flight| {
                format!("<<\"{:?}\", p{}, {}>>", flight.write, flight.claim + 1, flight.target)
            },
        );
        let reclaiming = state.reclaiming.map_or_else(
            || "nil".to_owned(),
            |(claim, number)| format!("<<p{}, {number}>>", claim + 1),
        );
        vec![
            ("rd", format!("\"{:?}\"", state.destination)),
            ("li", image_name(state.latest)),
            ("published", format!("{{{}}}", published.join(", "))),
            ("vs", listed(images.collect())),
            ("claim", listed(claims.map(show_claim).collect())),
            ("prime", listed(primes.collect())),
            ("pv", listed(volumes.collect())),
            ("flight", flight),
            ("reclaiming", reclaiming),
            ("vandals", state.vandalised.to_string()),
            ("faults", state.faults.to_string()),
        ]
    }
}

fn show_claim(claim: &Claim) -> String {
    let named = claim.named.map_or_else(
        || "nil".to_owned(),
        |(claim, number)| format!("<<p{}, {number}>>", claim + 1),
    );
    format!(
        "[life |-> \"{:?}\", deleting |-> {}, marked |-> {}, protected |-> {}, img |-> {}, \
         pv |-> {named}, phase |-> \"{:?}\"]",
        claim.life,
        truth(claim.deleting),
        truth(claim.marked),
        truth(claim.protected),
        image_name(claim.pin),
        claim.phase
    )
}

fn show_prime(claim: &Claim) -> String {
    let Some(prime) = claim.prime else { return "nil".to_owned() };
    format!(
        "[no |-> {}, src |-> {}, protected |-> {}, deleting |-> {}, named |-> {}, \
         phase |-> \"{:?}\"]",
        prime.number,
        image_name(Some(prime.source)),
        truth(prime.protected),
        truth(prime.deleting),
        truth(prime.named),
        prime.phase
    )
}

fn show_volume(volume: &Volume) -> String {
    if *volume == Volume::default() {
        return "nil".to_owned();
    }
    format!(
        "[disk |-> \"{:?}\", img |-> {}, record |-> {}, handed |-> {}, retain |-> {}, \
         noted |-> {}, released |-> {}, going |-> {}]",
        volume.folder,
        image_name(volume.data),
        truth(volume.record),
        truth(volume.handed),
        truth(volume.retain),
        truth(volume.noted),
        truth(volume.released),
        truth(volume.going)
    )
}
