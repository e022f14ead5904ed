---------------------- MODULE VolSyncPopulatorFixed ----------------------
(* VolSyncPopulator repaired: a claim reads the latest image first, then  *)
(* takes a finalizer on that very snapshot, which fails if it is already  *)
(* being deleted. Two separate steps, so the image may move on, or go, in *)
(* between.                                                                *)
(*                                                                         *)
(* One destination (RD) may be turned into several snapshots over time;   *)
(* LatestImage (LI) names whichever is newest. Any number of claims (PVC)  *)
(* may be made from it, each bound to a volume (PV) when it has one. Ids   *)
(* are used once.                                                          *)
EXTENDS FiniteSets, Naturals

CONSTANTS
    OIDs,      \* ids to draw from
    nil,       \* no id
    MaxPVC,    \* bound on claims made
    Protect    \* FALSE: the old snapshot goes at once, without a finalizer check

VARIABLES
    Objs,    \* the objects: records with at least oid and k (the kind)
    used,    \* ids ever drawn
    choice   \* [claim id -> image id a populator has read, or nil]

vars == << Objs, used, choice >>

Kind(k) == {o \in Objs : o.k = k}
Free    == OIDs \ used
Put(S)  == used' = used \cup {o.oid : o \in S}

Init == Objs = {} /\ used = {} /\ choice = [i \in OIDs |-> nil]

VS(i)    == {o \in Kind("VS") : o.oid = i}
Unbound  == {p \in Kind("PVC") : p.phase # "Bound"}

(* Ids to leave for what is still to come: two for each claim not made     *)
(* (claim and volume), one for each claim without a volume.                *)
Reserve == 2 * (MaxPVC - Cardinality(Kind("PVC"))) + Cardinality(Unbound)

-----------------------------------------------------------------------------
CreateRD ==
    /\ Kind("RD") = {}
    /\ \E i \in Free :
          LET o == [oid |-> i, k |-> "RD", LI |-> nil] IN
          /\ Objs' = Objs \cup {o}
          /\ Put({o})
    /\ UNCHANGED choice

CreatePVC ==
    /\ Cardinality(Kind("PVC")) < MaxPVC
    /\ \E rd \in Kind("RD"), i \in Free :
          LET o == [oid |-> i, k |-> "PVC", src |-> rd.oid, phase |-> "Pending", img |-> nil,
                    pv |-> nil]
          IN /\ Objs' = Objs \cup {o}
             /\ Put({o})
    /\ UNCHANGED choice

Snapshot ==
    /\ Cardinality(Free) > Reserve
    /\ \E rd \in Kind("RD"), i \in Free :
          LET o == [oid |-> i, k |-> "VS", owner |-> rd.oid, deleted |-> FALSE, fin |-> {}] IN
          /\ Objs' = (Objs \ {rd}) \cup {o, [rd EXCEPT !.LI = i]}
          /\ Put({o})
    /\ UNCHANGED choice

(* An image that is not the latest is marked, and goes when nobody holds   *)
(* it. Without Protect it goes at once, held or not.                       *)
DeleteOld ==
    /\ \E vs \in Kind("VS") :
          /\ ~vs.deleted
          /\ \A rd \in Kind("RD") : rd.LI # vs.oid
          /\ Objs' = (Objs \ {vs}) \cup (IF Protect THEN {[vs EXCEPT !.deleted = TRUE]} ELSE {})
    /\ UNCHANGED << used, choice >>

Collect ==
    /\ \E vs \in Kind("VS") :
          /\ vs.deleted
          /\ vs.fin = {}
          /\ Objs' = Objs \ {vs}
    /\ UNCHANGED << used, choice >>

-----------------------------------------------------------------------------
(* The populator of one claim, in two steps: read, then hold. Ids may have *)
(* moved on in between; the hold checks the image is still there.          *)

PopRead(p) ==
    /\ p.phase = "Pending"
    /\ choice[p.oid] = nil
    /\ \E rd \in Kind("RD") :
          /\ rd.oid = p.src
          /\ rd.LI # nil
          /\ choice' = [choice EXCEPT ![p.oid] = rd.LI]
    /\ UNCHANGED << Objs, used >>

PopClaim(p) ==
    LET c == choice[p.oid] IN
    /\ p.phase = "Pending"
    /\ c # nil
    /\ IF \E vs \in VS(c) : ~vs.deleted
       THEN /\ \E vs \in VS(c) :
                  Objs' = (Objs \ {vs, p}) \cup
                             {[vs EXCEPT !.fin = @ \cup {p.oid}],
                              [p EXCEPT !.phase = "Populating", !.img = c]}
            /\ UNCHANGED choice
       ELSE /\ choice' = [choice EXCEPT ![p.oid] = nil]   \* gone: read again next time
            /\ UNCHANGED Objs
    /\ UNCHANGED used

PopFinish(p) ==
    /\ p.phase = "Populating"
    /\ \E vs \in VS(p.img), i \in Free :
          LET pv == [oid |-> i, k |-> "PV", img |-> p.img, claim |-> p.oid] IN
          /\ Objs' = (Objs \ {p, vs}) \cup
                        {pv,
                         [p EXCEPT !.phase = "Bound", !.pv = i],
                         [vs EXCEPT !.fin = @ \ {p.oid}]}
          /\ Put({pv})
    /\ UNCHANGED choice

-----------------------------------------------------------------------------
Next ==
    \/ CreateRD
    \/ CreatePVC
    \/ Snapshot
    \/ DeleteOld
    \/ Collect
    \/ \E p \in Kind("PVC") : PopRead(p) \/ PopClaim(p) \/ PopFinish(p)

(* Fairness is for some claim, not for each. That is enough here: claims   *)
(* and ids are finite, so the others run out of steps.                     *)
APopRead   == \E p \in Kind("PVC") : PopRead(p)
APopClaim  == \E p \in Kind("PVC") : PopClaim(p)
APopFinish == \E p \in Kind("PVC") : PopFinish(p)

Spec ==
    /\ Init
    /\ [][Next]_vars
    /\ WF_vars(CreateRD)
    /\ WF_vars(CreatePVC)
    /\ WF_vars(Snapshot)
    /\ WF_vars(DeleteOld)
    /\ WF_vars(Collect)
    /\ WF_vars(APopRead)
    /\ WF_vars(APopClaim)
    /\ WF_vars(APopFinish)

-----------------------------------------------------------------------------
TypeOk ==
    /\ \A o \in Objs : o.k \in {"RD", "VS", "PV", "PVC"} /\ o.oid \in used
    /\ \A x, y \in Objs : x = y \/ x.oid # y.oid

LatestImageExists ==
    \A rd \in Kind("RD") : rd.LI = nil \/ \E vs \in VS(rd.LI) : ~vs.deleted

ImageInUseExists ==
    \A p \in Kind("PVC") : p.phase = "Populating" => VS(p.img) # {}

BoundIsPopulated ==
    \A p \in Kind("PVC") :
       p.phase = "Bound" =>
          \E v \in Kind("PV") : v.oid = p.pv /\ v.claim = p.oid /\ v.img = p.img /\ v.img # nil

OnePVperClaim == \A v, x \in Kind("PV") : v.claim = x.claim => v = x

AllBound == <>[](Cardinality(Kind("PVC")) = MaxPVC /\ Unbound = {})

OldImagesGo ==
    <>[](\A vs \in Kind("VS") : \E rd \in Kind("RD") : rd.LI = vs.oid)
=============================================================================
