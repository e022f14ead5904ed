----------------------------- MODULE Populator -----------------------------
(* A stage before Volumes: the hold alone. A destination publishes images; *)
(* claims are filled from an image through an auxiliary claim.             *)
EXTENDS Naturals, FiniteSets

CONSTANTS
    Snaps,         \* the images that may be published; an id is used once
    PVCs,          \* the claims
    nil,           \* no image
    HoldHonoured,  \* FALSE: the deleter does not look at holds
    HoldFirst      \* FALSE: the hold is taken only when the auxiliary claim is made

VARIABLES
    li,     \* the latest image, or nil
    vs,     \* images that exist
    hold,   \* set of <<image, claim>>
    ph,     \* [PVCs -> "Pending" | "Held" | "Prime" | "PV" | "Bound"]
    src,    \* [PVCs -> image chosen, or nil]
    ready,  \* not used at this stage, always {}
    made    \* images that were ever published

vars == << li, vs, hold, ph, src, ready, made >>

Init ==
    /\ li    = nil
    /\ vs    = {}
    /\ hold  = {}
    /\ ph    = [p \in PVCs |-> "Pending"]
    /\ src   = [p \in PVCs |-> nil]
    /\ ready = {}
    /\ made  = {}

Publish(s) ==
    /\ s \notin made
    /\ made' = made \cup {s}
    /\ vs' = vs \cup {s}
    /\ li' = s
    /\ UNCHANGED << hold, ph, src, ready >>

Delete(s) ==
    /\ s \in vs
    /\ s # li
    /\ HoldHonoured => ~\E p \in PVCs : <<s, p>> \in hold
    /\ vs' = vs \ {s}
    /\ UNCHANGED << li, hold, ph, src, ready, made >>

(* The image chosen may be an old latest one, from a stale cache. As a     *)
(* compare-and-set on the image, the hold fails if the image is gone.      *)
Hold(p) ==
    /\ ph[p] = "Pending"
    /\ \E s \in made :
          /\ s \in vs \/ ~HoldFirst
          /\ src' = [src EXCEPT ![p] = s]
          /\ hold' = IF HoldFirst THEN hold \cup {<<s, p>>} ELSE hold
    /\ ph' = [ph EXCEPT ![p] = "Held"]
    /\ UNCHANGED << li, vs, ready, made >>

Prime(p) ==
    /\ ph[p] = "Held"
    /\ ph' = [ph EXCEPT ![p] = "Prime"]
    /\ hold' = hold \cup {<<src[p], p>>}
    /\ UNCHANGED << li, vs, src, ready, made >>

Provision(p) ==
    /\ ph[p] = "Prime"
    /\ src[p] \in vs
    /\ ph' = [ph EXCEPT ![p] = "PV"]
    /\ UNCHANGED << li, vs, hold, src, ready, made >>

Rebind(p) ==
    /\ ph[p] = "PV"
    /\ ph' = [ph EXCEPT ![p] = "Bound"]
    /\ UNCHANGED << li, vs, hold, src, ready, made >>

Cleanup(p) ==
    /\ ph[p] = "Bound"
    /\ hold' = hold \ {<<s, p>> : s \in Snaps}
    /\ UNCHANGED << li, vs, ph, src, ready, made >>

(* The claims' steps stand under the quantifier over images, so TLC counts *)
(* each once per image.                                                    *)
Next ==
    \E s \in Snaps :
       \/ Publish(s)
       \/ Delete(s)
       \/ \E p \in PVCs :
             \/ Hold(p)
             \/ Prime(p)
             \/ Provision(p)
             \/ Rebind(p)
             \/ Cleanup(p)

Spec ==
    /\ Init
    /\ [][Next]_vars
    /\ \A p \in PVCs :
          /\ WF_vars(Hold(p))
          /\ WF_vars(Prime(p))
          /\ WF_vars(Provision(p))
          /\ WF_vars(Rebind(p))
          /\ WF_vars(Cleanup(p))

-----------------------------------------------------------------------------
SourceLives == \A p \in PVCs : ph[p] \in {"Held", "Prime"} => src[p] \in vs

LIExists == li = nil \/ li \in vs

EventuallyBound == \A p \in PVCs : (li # nil) ~> (ph[p] = "Bound")
=============================================================================
