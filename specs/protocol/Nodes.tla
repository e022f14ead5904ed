------------------------------- MODULE Nodes -------------------------------
(* One node is lent to one tenant at a time; its DPUs enforce it.          *)
(*                                                                         *)
(* The hub binds the node to a tenant under a new epoch. The tenant's side *)
(* writes an attachment <<tenant, epoch>>, which may land arbitrarily late *)
(* or be forged. A DPU programs an attachment only if it matches the hub's *)
(* record exactly and its epoch is above the floor: the highest epoch that *)
(* was revoked. A revoked node returns to the pool when every DPU has      *)
(* reported itself clean at this floor, or is known to be without power.   *)
(*                                                                         *)
(* Each boolean constant switches one guard off.                           *)
EXTENDS Integers, FiniteSets

CONSTANTS
    Tenants,         \* the tenants
    DPUs,            \* the DPUs of the node
    MaxEp,           \* bound on bindings
    MaxF,            \* bound on faults
    MaxForge,        \* bound on forged attachments
    ExactMatch,      \* FALSE: an attachment need not match owner and epoch of the hub
    FloorCheck,      \* FALSE: an attachment at or under the floor may be programmed
    LoadedCheck,     \* FALSE: a DPU programs before it has read the hub since its boot
    ConsistentBoot,  \* FALSE: the first read after a boot may be answered by a cache
    FreshEvidence,   \* FALSE: an old look at the power counts for the present epoch
    ClosedBoot,      \* FALSE: hardware keeps its table through a power loss
    EpochAck,        \* FALSE: a report for any epoch counts
    ReadBack         \* FALSE: a DPU reports without reading its table back

None == "none"

VARIABLES
    st,       \* the node at the hub: "Available", "Bound", "Releasing"
    owner,    \* its tenant, or None
    ep,       \* epoch of the last binding
    floor,    \* highest epoch revoked
    bound,    \* every <<tenant, epoch>> that was ever bound
    dlv,      \* bindings that the tenant's side has heard of
    late,     \* attachments sent and not landed
    ever,     \* attachments that can be read, old and forged ones included
    view,     \* [DPUs -> [ep, owner, floor]] what each DPU saw of the hub last
    loaded,   \* [DPUs -> BOOLEAN] it has read the hub since its boot
    hw,       \* [DPUs -> set of attachments] what is programmed
    online,   \* [DPUs -> BOOLEAN] its agent runs
    power,    \* [DPUs -> BOOLEAN]
    netM,     \* [DPUs -> BOOLEAN] it reaches the hub
    acks,     \* reports <<dpu, floor>> that the hub has
    lateAck,  \* reports on their way
    evid,     \* [DPUs -> epoch] highest epoch for which the DPU was seen without power
    f,        \* faults so far
    forge,    \* forged attachments so far
    hist      \* every value of the hub's record [ep, owner, floor]

vars == << st, owner, ep, floor, bound, dlv, late, ever, view, loaded, hw, online, power, netM,
           acks, lateAck, evid, f, forge, hist >>

Blank == [ep |-> 0, owner |-> None, floor |-> 0]
Snap  == [ep |-> ep, owner |-> owner, floor |-> floor]

Init ==
    /\ st      = "Available"
    /\ owner   = None
    /\ ep      = 0
    /\ floor   = 0
    /\ bound   = {}
    /\ dlv     = {}
    /\ late    = {}
    /\ ever    = {}
    /\ view    = [d \in DPUs |-> Blank]
    /\ loaded  = [d \in DPUs |-> FALSE]
    /\ hw      = [d \in DPUs |-> {}]
    /\ online  = [d \in DPUs |-> TRUE]
    /\ power   = [d \in DPUs |-> TRUE]
    /\ netM    = [d \in DPUs |-> TRUE]
    /\ acks    = {}
    /\ lateAck = {}
    /\ evid    = [d \in DPUs |-> 0]
    /\ f       = 0
    /\ forge   = 0
    /\ hist    = {Blank}

-----------------------------------------------------------------------------
(* The hub and the tenants. *)

Bind(t) ==
    /\ st = "Available"
    /\ ep < MaxEp
    /\ ep' = ep + 1
    /\ owner' = t
    /\ st' = "Bound"
    /\ bound' = bound \cup {<<t, ep + 1>>}
    /\ hist' = hist \cup {[ep |-> ep + 1, owner |-> t, floor |-> floor]}
    /\ UNCHANGED << floor, dlv, late, ever, view, loaded, hw, online, power, netM, acks,
                    lateAck, evid, f, forge >>

Deliver ==
    /\ \E b \in bound \ dlv :
          /\ dlv' = dlv \cup {b}
          /\ late' = late \cup {b}
    /\ UNCHANGED << st, owner, ep, floor, bound, ever, view, loaded, hw, online, power, netM,
                    acks, lateAck, evid, f, forge, hist >>

(* However late: no guard asks whether the binding still stands. *)
Land ==
    /\ \E b \in late :
          /\ late' = late \ {b}
          /\ ever' = ever \cup {b}
    /\ UNCHANGED << st, owner, ep, floor, bound, dlv, view, loaded, hw, online, power, netM,
                    acks, lateAck, evid, f, forge, hist >>

(* A tenant writes whatever it likes into its own store. *)
Forge(t) ==
    /\ forge < MaxForge
    /\ forge' = forge + 1
    /\ \E e \in 1..(MaxEp + 1) : ever' = ever \cup {<<t, e>>}
    /\ UNCHANGED << st, owner, ep, floor, bound, dlv, late, view, loaded, hw, online, power,
                    netM, acks, lateAck, evid, f, hist >>

(* The floor rises with the revocation, in the same write. *)
Revoke ==
    /\ st = "Bound"
    /\ st' = "Releasing"
    /\ floor' = ep
    /\ hist' = hist \cup {[ep |-> ep, owner |-> owner, floor |-> ep]}
    /\ UNCHANGED << owner, ep, bound, dlv, late, ever, view, loaded, hw, online, power, netM,
                    acks, lateAck, evid, f, forge >>

(* Clean at the present epoch: a report about an older one says nothing    *)
(* about what was programmed since, and so does an old look at the power.  *)
Clean(d) ==
    \/ \E a \in acks : a[1] = d /\ (a[2] >= ep \/ ~EpochAck)
    \/ evid[d] >= ep

Finish ==
    /\ st = "Releasing"
    /\ \A d \in DPUs : Clean(d)
    /\ st' = "Available"
    /\ owner' = None
    /\ hist' = hist \cup {[ep |-> ep, owner |-> None, floor |-> floor]}
    /\ UNCHANGED << ep, floor, bound, dlv, late, ever, view, loaded, hw, online, power, netM,
                    acks, lateAck, evid, f, forge >>

-----------------------------------------------------------------------------
(* The DPU. *)

(* Later reads may lag, but the first one after a boot must not: an old    *)
(* floor would let old attachments in.                                     *)
View(d) ==
    /\ online[d]
    /\ netM[d]
    /\ IF loaded[d]
       THEN /\ view[d] # Snap
            /\ view' = [view EXCEPT ![d] = Snap]
            /\ UNCHANGED loaded
       ELSE /\ loaded' = [loaded EXCEPT ![d] = TRUE]
            /\ \E s \in (IF ConsistentBoot THEN {Snap} ELSE hist) :
                  view' = [view EXCEPT ![d] = s]
    /\ UNCHANGED << st, owner, ep, floor, bound, dlv, late, ever, hw, online, power, netM,
                    acks, lateAck, evid, f, forge, hist >>

Ok(d)     == online[d] /\ (loaded[d] \/ ~LoadedCheck)
Bad(d, x) == x[2] <= view[d].floor

Drop(d) ==
    /\ online[d]
    /\ loaded[d]
    /\ \E x \in hw[d] :
          /\ Bad(d, x)
          /\ hw' = [hw EXCEPT ![d] = @ \ {x}]
    /\ UNCHANGED << st, owner, ep, floor, bound, dlv, late, ever, view, loaded, online, power,
                    netM, acks, lateAck, evid, f, forge, hist >>

(* The report says: nothing at or under this floor is programmed here, and *)
(* nothing such ever will be.                                              *)
Report(d) ==
    /\ online[d]
    /\ loaded[d]
    /\ view[d].floor > 0
    /\ ReadBack => ~\E x \in hw[d] : Bad(d, x)
    /\ <<d, view[d].floor>> \notin acks \cup lateAck
    /\ lateAck' = lateAck \cup {<<d, view[d].floor>>}
    /\ UNCHANGED << st, owner, ep, floor, bound, dlv, late, ever, view, loaded, hw, online,
                    power, netM, acks, evid, f, forge, hist >>

LandAck ==
    /\ \E a \in lateAck :
          /\ netM[a[1]]
          /\ lateAck' = lateAck \ {a}
          /\ acks' = acks \cup {a}
    /\ UNCHANGED << st, owner, ep, floor, bound, dlv, late, ever, view, loaded, hw, online,
                    power, netM, evid, f, forge, hist >>

(* The floor keeps out what was revoked while the view lags; the exact     *)
(* match keeps out what was never bound. Both compare with the same view.  *)
Program(d) ==
    /\ Ok(d)
    /\ hw[d] = {}
    /\ \E x \in ever :
          /\ FloorCheck => x[2] > view[d].floor
          /\ ExactMatch => x[1] = view[d].owner /\ x[2] = view[d].ep
          /\ hw' = [hw EXCEPT ![d] = {x}]
    /\ UNCHANGED << st, owner, ep, floor, bound, dlv, late, ever, view, loaded, online, power,
                    netM, acks, lateAck, evid, f, forge, hist >>

-----------------------------------------------------------------------------
(* Faults, and the way back. *)

(* The agent dies; the hardware forwards on. *)
AgentCrash(d) ==
    /\ online[d]
    /\ f < MaxF
    /\ f' = f + 1
    /\ online' = [online EXCEPT ![d] = FALSE]
    /\ loaded' = [loaded EXCEPT ![d] = FALSE]
    /\ view' = [view EXCEPT ![d] = Blank]
    /\ UNCHANGED << st, owner, ep, floor, bound, dlv, late, ever, hw, power, netM, acks,
                    lateAck, evid, forge, hist >>

AgentUp(d) ==
    /\ ~online[d]
    /\ power[d]
    /\ online' = [online EXCEPT ![d] = TRUE]
    /\ UNCHANGED << st, owner, ep, floor, bound, dlv, late, ever, view, loaded, hw, power,
                    netM, acks, lateAck, evid, f, forge, hist >>

Off(d) ==
    /\ power[d]
    /\ f < MaxF
    /\ f' = f + 1
    /\ power' = [power EXCEPT ![d] = FALSE]
    /\ online' = [online EXCEPT ![d] = FALSE]
    /\ loaded' = [loaded EXCEPT ![d] = FALSE]
    /\ view' = [view EXCEPT ![d] = Blank]
    /\ hw' = IF ClosedBoot THEN [hw EXCEPT ![d] = {}] ELSE hw
    /\ UNCHANGED << st, owner, ep, floor, bound, dlv, late, ever, netM, acks, lateAck, evid,
                    forge, hist >>

On(d) ==
    /\ ~power[d]
    /\ power' = [power EXCEPT ![d] = TRUE]
    /\ UNCHANGED << st, owner, ep, floor, bound, dlv, late, ever, view, loaded, hw, online,
                    netM, acks, lateAck, evid, f, forge, hist >>

(* The hub asks the power supply. The answer is good for what was revoked  *)
(* before the question: a DPU seen off before the floor rose may have been *)
(* programmed in between.                                                  *)
See(d) ==
    /\ ~power[d]
    /\ evid[d] # (IF FreshEvidence THEN floor ELSE ep)
    /\ evid' = [evid EXCEPT ![d] = IF FreshEvidence THEN floor ELSE ep]
    /\ UNCHANGED << st, owner, ep, floor, bound, dlv, late, ever, view, loaded, hw, online,
                    power, netM, acks, lateAck, f, forge, hist >>

Cut(d) ==
    /\ netM[d]
    /\ f < MaxF
    /\ f' = f + 1
    /\ netM' = [netM EXCEPT ![d] = FALSE]
    /\ UNCHANGED << st, owner, ep, floor, bound, dlv, late, ever, view, loaded, hw, online,
                    power, acks, lateAck, evid, forge, hist >>

Heal(d) ==
    /\ ~netM[d]
    /\ netM' = [netM EXCEPT ![d] = TRUE]
    /\ UNCHANGED << st, owner, ep, floor, bound, dlv, late, ever, view, loaded, hw, online,
                    power, acks, lateAck, evid, f, forge, hist >>

-----------------------------------------------------------------------------
Next ==
    \/ Deliver
    \/ Land
    \/ Revoke
    \/ Finish
    \/ LandAck
    \/ \E t \in Tenants : Bind(t) \/ Forge(t)
    \/ \E d \in DPUs :
          \/ View(d)
          \/ Drop(d)
          \/ Report(d)
          \/ Program(d)
          \/ AgentCrash(d)
          \/ AgentUp(d)
          \/ Off(d)
          \/ On(d)
          \/ See(d)
          \/ Cut(d)
          \/ Heal(d)

Fair ==
    /\ WF_vars(Deliver)
    /\ WF_vars(Land)
    /\ WF_vars(Finish)
    /\ WF_vars(LandAck)
    /\ \A d \in DPUs :
          /\ WF_vars(View(d))
          /\ WF_vars(Drop(d))
          /\ WF_vars(Report(d))
          /\ WF_vars(Program(d))
          /\ WF_vars(AgentUp(d))
          /\ WF_vars(On(d))
          /\ WF_vars(Heal(d))

Spec == Init /\ [][Next]_vars /\ Fair

-----------------------------------------------------------------------------
(* What is programmed and forwards: nothing without power. *)
Live(d) == IF power[d] THEN hw[d] ELSE {}

(* Over all DPUs of the node at once. *)
Isolation == Cardinality({x[1] : x \in UNION {Live(d) : d \in DPUs}}) <= 1

PoolClean == st = "Available" => \A d \in DPUs : Live(d) = {}

Owned == \A d \in DPUs : \A x \in Live(d) : x \in bound /\ x[2] = ep

Reclaims == (st = "Releasing") ~> (st = "Available")

Converges ==
    \A t \in Tenants :
       <>[](st = "Bound" /\ owner = t) => <>[](\A d \in DPUs : <<t, ep>> \in Live(d))
=============================================================================
