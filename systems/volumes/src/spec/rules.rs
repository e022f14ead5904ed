//! The rules that keep an image while it is needed, and each of them broken on purpose.

use super::Volumes;
use interlock_checker::Mutant;

/// What the protocol insists on. All of it holds in the protocol; a mutant gives one thing up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rules {
    /// `HoldFirst`: the image is held before PVC' is made of it.
    pub hold_first: bool,
    /// `HoldHonoured`: old images are not deleted while they are held.
    pub hold_honoured: bool,
    /// `HoldStopsGC`: a hold is a finalizer, so that a deleted image stays until it is dropped.
    pub hold_stops_gc: bool,
    /// `WaitReady`: an image is published when it is ready to use.
    pub wait_ready: bool,
    /// `CheckReady`: an image is held when it is ready to use.
    pub check_ready: bool,
    /// `RetainFirst`: the volume is set to Retain before it changes hands.
    pub retain_first: bool,
    /// `WaitBound`: PVC' goes only after the claim is bound.
    pub wait_bound: bool,
    /// `Heal`: a PVC' whose image died is made anew from another.
    pub heal: bool,
    /// `DropOnDelete`: a claim that is deleted drops its hold.
    pub drop_on_delete: bool,
    /// `RDFinal`: a destination stays while an image of it is held.
    pub rd_final: bool,
    /// `CSI`: the storage refuses to make a volume of a snapshot that is being deleted. This is
    /// a fact about storage, which makes healing needed, not a rule of ours.
    pub csi: bool,
    /// `KeepLI`: the published image is not deleted.
    pub keep_li: bool,
}

impl Rules {
    /// The protocol.
    pub const ALL: Rules = Rules {
        hold_first: true,
        hold_honoured: true,
        hold_stops_gc: true,
        wait_ready: true,
        check_ready: true,
        retain_first: true,
        wait_bound: true,
        heal: true,
        drop_on_delete: true,
        rd_final: true,
        csi: true,
        keep_li: true,
    };
}

const ALL: Rules = Rules::ALL;

impl Volumes {
    /// An image can be superseded only if there are two.
    fn broken(&self, rules: Rules) -> Volumes {
        Volumes { images: self.images.max(2), rules, ..self.clone() }
    }

    pub(super) fn broken_rules(&self) -> Vec<Mutant<Volumes>> {
        let mut mutants = self.lost_images();
        mutants.extend(self.lost_volumes());
        mutants.extend(self.stuck_claims());
        mutants
    }

    fn lost_images(&self) -> Vec<Mutant<Volumes>> {
        vec![
            Mutant::new(
                "hold-late",
                "PVC' is made of an image first, and the image held only then",
                &["SourceLives"],
                self.broken(Rules { hold_first: false, ..ALL }),
            ),
            Mutant::new(
                "hold-ignored",
                "old images are deleted although a claim is being filled from them",
                &["SourceLives"],
                self.broken(Rules { hold_honoured: false, ..ALL }),
            ),
            Mutant::new(
                "destination-goes-early",
                "the destination goes, and its images with it, while one is held",
                &["SourceLives"],
                self.broken(Rules { rd_final: false, ..ALL }),
            ),
            Mutant::new(
                "hold-no-finalizer",
                "a hold is only a note: an image that is deleted by hand goes at once",
                &["HeldExists"],
                Volumes {
                    vandals: self.vandals.max(1),
                    ..self.broken(Rules { hold_stops_gc: false, ..ALL })
                },
            ),
            Mutant::new(
                "latest-deleted",
                "the image that is published may be deleted as an old one",
                &["LIExists"],
                self.broken(Rules { keep_li: false, ..ALL }),
            ),
        ]
    }

    fn lost_volumes(&self) -> Vec<Mutant<Volumes>> {
        vec![
            Mutant::new(
                "publish-before-ready",
                "an image is published before it is ready to use",
                &["LatestIsReady"],
                self.broken(Rules { wait_ready: false, ..ALL }),
            ),
            Mutant::new(
                "hold-before-ready",
                "an image is held and poured before it is ready to use",
                &["BoundIsPopulated"],
                self.broken(Rules { check_ready: false, ..ALL }),
            ),
            Mutant::new(
                "use-before-ready",
                "an image is published and poured before it is ready to use",
                &["BoundIsPopulated"],
                self.broken(Rules { wait_ready: false, check_ready: false, ..ALL }),
            ),
            Mutant::new(
                "drop-before-bound",
                "PVC' is deleted before the claim is bound to its volume",
                &["NeverLost"],
                self.broken(Rules { wait_bound: false, ..ALL }),
            ),
            Mutant::new(
                "no-retain",
                "the volume changes hands while its reclaim policy would still delete it",
                &["HandedOverIsKept"],
                self.broken(Rules { retain_first: false, ..ALL }),
            ),
            Mutant::new(
                "drop-without-retain",
                "PVC' is deleted before the claim is bound, and its volume reclaimed with it",
                &["NeverLost"],
                self.broken(Rules { wait_bound: false, retain_first: false, ..ALL }),
            ),
        ]
    }

    fn stuck_claims(&self) -> Vec<Mutant<Volumes>> {
        vec![
            Mutant::new(
                "no-second-choice",
                "when somebody deletes the image by hand, the claim waits for it for ever",
                &["EventuallyBound"],
                Volumes {
                    vandals: self.vandals.max(1),
                    ..self.broken(Rules { heal: false, ..ALL })
                },
            ),
            Mutant::new(
                "hold-kept-on-delete",
                "a claim that is deleted leaves its hold behind",
                &["HoldsEnd"],
                self.broken(Rules { drop_on_delete: false, ..ALL }),
            ),
        ]
    }
}
