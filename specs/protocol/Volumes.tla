------------------------------ MODULE Volumes ------------------------------
(* Images are taken, kept while needed, and poured into claims.            *)
(*                                                                         *)
(* One destination (RD) publishes images; the latest one is li. A claim is *)
(* filled in steps: hold the image, make an auxiliary claim (prime) of it, *)
(* storage makes a volume, the volume is retained and handed over to the   *)
(* claim, the claim binds, and what was put up is taken down. The user may *)
(* delete claim or destination at any time, and someone may delete a held  *)
(* image by hand. The populator may act on an old li.                      *)
(*                                                                         *)
(* Each boolean constant switches one guard off.                           *)
EXTENDS Naturals, FiniteSets

CONSTANTS
    Snaps,         \* the images that may be taken; an id is used once
    Claims,        \* the claims
    nil,           \* no image
    HoldFirst,     \* FALSE: the hold is taken after the auxiliary claim is made
    HoldHonoured,  \* FALSE: the deleter does not look at holds
    HoldStopsGC,   \* FALSE: a held image vanishes when deleted; TRUE: it is dying until let go
    WaitReady,     \* FALSE: an image is published before it is ready
    CheckReady,    \* FALSE: an image is held before it is ready
    RetainFirst,   \* FALSE: the volume is handed over while its policy is Delete
    WaitBound,     \* FALSE: the auxiliary claim goes before the claim is bound
    Heal,          \* FALSE: no second choice when the source of a fill dies
    DropOnDelete,  \* FALSE: the hold stays when the claim is deleted
    RDFinal,       \* FALSE: the destination may go while one of its images is held
    CSI,           \* TRUE: provisioners refuse an image that is being deleted
    Vandals,       \* how many images someone deletes by hand
    KeepLI         \* FALSE: the latest image may be deleted

VARIABLES
    rd,     \* the destination: "live", "deleting", "gone"
    li,     \* its latest image, or nil
    vs,     \* [Snaps -> "none" | "new" (not ready) | "ready" | "dying"]
    made,   \* images that have ever been taken
    claim,  \* [Claims -> "none" | "Pending" | "Bound" | "Deleting" | "gone"]
    hold,   \* set of <<image, claim>>: the claim holds the image
    prime,  \* [Claims -> [st: "none" | "Pending" | "Bound", src: image]] the auxiliary claim
    pv,     \* [Claims -> [st, data, keep]] its volume: whose it is ("prime", then "claim",
            \*   then "bound"; "lost" if reclaimed), content, and whether it is retained
    broke   \* how many images were deleted by hand

vars == << rd, li, vs, made, claim, hold, prime, pv, broke >>

NoPrime == [st |-> "none", src |-> nil]
NoPV    == [st |-> "none", data |-> nil, keep |-> FALSE]

Init ==
    /\ rd    = "live"
    /\ li    = nil
    /\ vs    = [s \in Snaps |-> "none"]
    /\ made  = {}
    /\ claim = [p \in Claims |-> "none"]
    /\ hold  = {}
    /\ prime = [p \in Claims |-> NoPrime]
    /\ pv    = [p \in Claims |-> NoPV]
    /\ broke = 0

Held(s)     == \E p \in Claims : <<s, p>> \in hold
Alive(s)    == vs[s] # "none"
Unusable(s) == vs[s] \in (IF CSI THEN {"none", "dying"} ELSE {"none"})

(* What becomes of a deleted image: a hold is a finalizer on it. *)
AfterDelete(s) == IF Held(s) /\ HoldStopsGC THEN "dying" ELSE "none"

-----------------------------------------------------------------------------
(* The destination's controller and the snapshot store. *)

(* One image at a time is in the making. *)
Take(s) ==
    /\ rd = "live"
    /\ s \notin made
    /\ \A x \in Snaps : vs[x] # "new"
    /\ made' = made \cup {s}
    /\ vs' = [vs EXCEPT ![s] = "new"]
    /\ UNCHANGED << rd, li, claim, hold, prime, pv, broke >>

Ready(s) ==
    /\ vs[s] = "new"
    /\ vs' = [vs EXCEPT ![s] = "ready"]
    /\ UNCHANGED << rd, li, made, claim, hold, prime, pv, broke >>

(* Before it is ready an image may give an empty volume. *)
PublishNew(s) ==
    /\ rd = "live"
    /\ s # li
    /\ vs[s] \in (IF WaitReady THEN {"ready"} ELSE {"new", "ready"})
    /\ li' = s
    /\ UNCHANGED << rd, vs, made, claim, hold, prime, pv, broke >>

(* An image goes when it is neither the latest nor held. *)
Delete(s) ==
    /\ vs[s] = "ready"
    /\ KeepLI => s # li
    /\ li # nil
    /\ HoldHonoured => ~Held(s)
    /\ vs' = [vs EXCEPT ![s] = AfterDelete(s)]
    /\ UNCHANGED << rd, li, made, claim, hold, prime, pv, broke >>

DeleteRD ==
    /\ rd = "live"
    /\ rd' = "deleting"
    /\ UNCHANGED << li, vs, made, claim, hold, prime, pv, broke >>

(* With the destination its images go, so it stays while one is held. *)
RDGone ==
    /\ rd = "deleting"
    /\ RDFinal => hold = {}
    /\ rd' = "gone"
    /\ li' = nil
    /\ UNCHANGED << vs, made, claim, hold, prime, pv, broke >>

(* The garbage collector, by owner reference. *)
Collect(s) ==
    /\ rd = "gone"
    /\ vs[s] \in {"new", "ready"}
    /\ vs' = [vs EXCEPT ![s] = AfterDelete(s)]
    /\ UNCHANGED << rd, li, made, claim, hold, prime, pv, broke >>

Reap(s) ==
    /\ vs[s] = "dying"
    /\ ~Held(s)
    /\ vs' = [vs EXCEPT ![s] = "none"]
    /\ UNCHANGED << rd, li, made, claim, hold, prime, pv, broke >>

(* Someone deletes an image by hand, held or not. *)
Vandal(s) ==
    /\ broke < Vandals
    /\ vs[s] = "ready"
    /\ s # li
    /\ broke' = broke + 1
    /\ vs' = [vs EXCEPT ![s] = AfterDelete(s)]
    /\ UNCHANGED << rd, li, made, claim, hold, prime, pv >>

-----------------------------------------------------------------------------
(* The user. *)

Create(p) ==
    /\ claim[p] = "none"
    /\ claim' = [claim EXCEPT ![p] = "Pending"]
    /\ UNCHANGED << rd, li, vs, made, hold, prime, pv, broke >>

Remove(p) ==
    /\ claim[p] = "Pending"
    /\ claim' = [claim EXCEPT ![p] = "Deleting"]
    /\ UNCHANGED << rd, li, vs, made, hold, prime, pv, broke >>

-----------------------------------------------------------------------------
(* The populator. *)

(* The image s may be an old latest one, read from a stale cache. The hold *)
(* is a compare-and-set on the image, so it fails if the image is gone.    *)
Hold(p, s) ==
    /\ claim[p] = "Pending"
    /\ prime[p].st = "none"
    /\ pv[p].st = "none"
    /\ s \in made
    /\ ~\E x \in Snaps : <<x, p>> \in hold
    /\ rd = "live"
    /\ li # nil
    /\ vs[s] \in (IF CheckReady THEN {"ready"} ELSE {"new", "ready"})
    /\ hold' = hold \cup {<<s, p>>}
    /\ UNCHANGED << rd, li, vs, made, claim, prime, pv, broke >>

(* The auxiliary claim is made of a held image that is fit for use.        *)
Prime(p, s) ==
    /\ claim[p] = "Pending"
    /\ prime[p].st = "none"
    /\ pv[p].st = "none"
    /\ IF HoldFirst
       THEN <<s, p>> \in hold /\ (Heal => ~Unusable(s))
       ELSE s \in made /\ li # nil
    /\ prime' = [prime EXCEPT ![p] = [st |-> "Pending", src |-> s]]
    /\ hold' = IF HoldFirst \/ ~Alive(s) THEN hold ELSE hold \cup {<<s, p>>}
    /\ UNCHANGED << rd, li, vs, made, claim, pv, broke >>

(* Storage: an image that is not ready gives an empty volume. *)
Provision(p) ==
    /\ prime[p].st = "Pending"
    /\ vs[prime[p].src] \in (IF CSI THEN {"new", "ready"} ELSE {"new", "ready", "dying"})
    /\ prime' = [prime EXCEPT ![p].st = "Bound"]
    /\ pv' = [pv EXCEPT ![p] =
                [st   |-> "prime",
                 data |-> IF vs[prime[p].src] = "new" THEN nil ELSE prime[p].src,
                 keep |-> FALSE]]
    /\ UNCHANGED << rd, li, vs, made, claim, hold, broke >>

(* A hold delays the end of a deleted image, but no provisioner will use   *)
(* it. So the fill has to begin again with another image.                  *)
HealPrime(p) ==
    /\ Heal
    /\ prime[p].st = "Pending"
    /\ Unusable(prime[p].src)
    /\ prime' = [prime EXCEPT ![p] = NoPrime]
    /\ UNCHANGED << rd, li, vs, made, claim, hold, pv, broke >>

HealHold(p) ==
    /\ Heal
    /\ prime[p].st = "none"
    /\ claim[p] = "Pending"
    /\ \E s \in Snaps :
          /\ <<s, p>> \in hold
          /\ Unusable(s)
          /\ hold' = hold \ {<<s, p>>}
    /\ UNCHANGED << rd, li, vs, made, claim, prime, pv, broke >>

Retain(p) ==
    /\ claim[p] = "Pending"
    /\ pv[p].st = "prime"
    /\ ~pv[p].keep
    /\ RetainFirst
    /\ pv' = [pv EXCEPT ![p].keep = TRUE]
    /\ UNCHANGED << rd, li, vs, made, claim, hold, prime, broke >>

Rebind(p) ==
    /\ claim[p] = "Pending"
    /\ pv[p].st = "prime"
    /\ RetainFirst => pv[p].keep
    /\ pv' = [pv EXCEPT ![p].st = "claim"]
    /\ UNCHANGED << rd, li, vs, made, claim, hold, prime, broke >>

Bind(p) ==
    /\ claim[p] = "Pending"
    /\ pv[p].st = "claim"
    /\ pv' = [pv EXCEPT ![p].st = "bound"]
    /\ claim' = [claim EXCEPT ![p] = "Bound"]
    /\ UNCHANGED << rd, li, vs, made, hold, prime, broke >>

(* While the volume still belongs to the auxiliary claim it goes with it:  *)
(* kept, it is an orphan; with policy Delete, it is reclaimed.             *)
DropPrime(p) ==
    /\ prime[p].st = "Bound"
    /\ claim[p] \in {"Pending", "Bound"}
    /\ IF WaitBound
       THEN claim[p] = "Bound"
       ELSE pv[p].st \in {"prime", "claim", "bound"} /\ (RetainFirst => pv[p].keep)
    /\ prime' = [prime EXCEPT ![p] = NoPrime]
    /\ pv' = IF pv[p].keep \/ pv[p].st = "bound"
             THEN IF pv[p].st = "prime" THEN [pv EXCEPT ![p].st = "lost"] ELSE pv
             ELSE [pv EXCEPT ![p] = [NoPV EXCEPT !.st = "lost"]]
    /\ UNCHANGED << rd, li, vs, made, claim, hold, broke >>

Drop(p) ==
    /\ \/ claim[p] = "Bound" /\ prime[p].st = "none"
       \/ claim[p] = "Deleting" /\ DropOnDelete /\ prime[p].st = "none"
    /\ \E s \in Snaps :
          /\ <<s, p>> \in hold
          /\ hold' = hold \ {<<s, p>>}
    /\ UNCHANGED << rd, li, vs, made, claim, prime, pv, broke >>

(* A claim that is deleted midway: first what was built goes, then its     *)
(* hold, then the claim. The other way round nobody would know of them.    *)
Undo(p) ==
    /\ claim[p] = "Deleting"
    /\ prime[p].st # "none"
    /\ prime' = [prime EXCEPT ![p] = NoPrime]
    /\ pv' = [pv EXCEPT ![p] = NoPV]
    /\ UNCHANGED << rd, li, vs, made, claim, hold, broke >>

Gone(p) ==
    /\ claim[p] = "Deleting"
    /\ prime[p].st = "none"
    /\ DropOnDelete => ~\E s \in Snaps : <<s, p>> \in hold
    /\ claim' = [claim EXCEPT ![p] = "gone"]
    /\ UNCHANGED << rd, li, vs, made, hold, prime, pv, broke >>

-----------------------------------------------------------------------------
PopStep(p) ==
    \/ \E s \in Snaps : Hold(p, s) \/ Prime(p, s)
    \/ HealPrime(p)
    \/ HealHold(p)
    \/ Retain(p)
    \/ Rebind(p)
    \/ DropPrime(p)
    \/ Drop(p)
    \/ Undo(p)
    \/ Gone(p)

Next ==
    \/ \E s \in Snaps :
          \/ Take(s)
          \/ Ready(s)
          \/ PublishNew(s)
          \/ Delete(s)
          \/ Collect(s)
          \/ Reap(s)
          \/ Vandal(s)
    \/ DeleteRD
    \/ RDGone
    \/ \E p \in Claims :
          \/ Create(p)
          \/ Remove(p)
          \/ Provision(p)
          \/ Bind(p)
          \/ PopStep(p)

Spec ==
    /\ Init
    /\ [][Next]_vars
    /\ \A s \in Snaps : WF_vars(Ready(s)) /\ WF_vars(Reap(s))
    /\ WF_vars(RDGone)
    /\ \A p \in Claims : WF_vars(PopStep(p)) /\ WF_vars(Provision(p)) /\ WF_vars(Bind(p))

-----------------------------------------------------------------------------
(* While the auxiliary claim waits, its image lives, unless someone took   *)
(* an image away by hand.                                                  *)
SourceLives ==
    broke = 0 =>
       \A p \in Claims : prime[p].st = "Pending" => vs[prime[p].src] \in {"new", "ready"}

LIExists == li = nil \/ vs[li] # "none"

BoundIsPopulated ==
    \A p \in Claims : claim[p] = "Bound" => pv[p].st = "bound" /\ pv[p].data # nil

NeverLost == \A p \in Claims : claim[p] \in {"Pending", "Bound"} => pv[p].st # "lost"

EventuallyBound ==
    \A p \in Claims :
       (claim[p] = "Pending" /\ li # nil) ~> (claim[p] # "Pending" \/ rd # "live")

RDEnds == (rd = "deleting") ~> (rd = "gone")

HoldsEnd ==
    \A p \in Claims :
       (claim[p] \in {"Bound", "gone"}) ~> (~\E s \in Snaps : <<s, p>> \in hold)
=============================================================================
