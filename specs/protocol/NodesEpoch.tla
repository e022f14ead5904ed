---------------------------- MODULE NodesEpoch ----------------------------
(* A stage before Nodes: epoch and floor alone. One node, two-phase       *)
(* release, an epoch per assignment, and a floor at each DPU under which   *)
(* nothing is programmed.                                                  *)
EXTENDS Integers, FiniteSets

CONSTANTS
    Tenants,     \* the tenants
    DPUs,        \* the DPUs of the node
    MaxEpoch,    \* bound on assignments
    MaxCrash,    \* bound on crashes and partitions
    FloorCheck,  \* FALSE: a DPU programs epochs at or under its floor
    LoadedCheck  \* FALSE: a DPU programs before it has loaded the floor since its boot

VARIABLES
    st,        \* "Available", "Bound", "Releasing"
    owner,     \* its tenant, or None
    epoch,     \* epoch of the last assignment
    floor,     \* highest epoch revoked; kept at the management
    inflight,  \* [Tenants -> set of epochs] writes that have not landed
    crs,       \* [Tenants -> set of epochs] resources in the tenant's store
    hw,        \* [DPUs -> [Tenants -> set of epochs]] what is programmed
    dfloor,    \* [DPUs -> epoch] the floor as the DPU knows it; lost in a crash
    ready,     \* [DPUs -> BOOLEAN] it has loaded the floor since its boot
    online,    \* [DPUs -> BOOLEAN]
    netM,      \* the DPUs reach the management
    netT,      \* [Tenants -> BOOLEAN] the DPUs reach the tenant's store
    acks,      \* reports <<dpu, epoch>>: nothing at or under it is programmed
    crashes    \* faults so far

vars == << st, owner, epoch, floor, inflight, crs, hw, dfloor, ready, online, netM, netT, acks,
           crashes >>

None == "none"

E == [t \in Tenants |-> {}]

Init ==
    /\ st       = "Available"
    /\ owner    = None
    /\ epoch    = 0
    /\ floor    = 0
    /\ inflight = E
    /\ crs      = E
    /\ hw       = [d \in DPUs |-> E]
    /\ dfloor   = [d \in DPUs |-> 0]
    /\ ready    = [d \in DPUs |-> FALSE]
    /\ online   = [d \in DPUs |-> TRUE]
    /\ netM     = TRUE
    /\ netT     = [t \in Tenants |-> TRUE]
    /\ acks     = {}
    /\ crashes  = 0

--------------------------------------------------------------------------
Assign(t) ==
    /\ st = "Available"
    /\ epoch < MaxEpoch
    /\ epoch' = epoch + 1
    /\ owner' = t
    /\ st' = "Bound"
    /\ inflight' = [inflight EXCEPT ![t] = @ \cup {epoch + 1}]
    /\ UNCHANGED << floor, crs, hw, dfloor, ready, online, netM, netT, acks, crashes >>

ReleaseStart ==
    /\ st = "Bound"
    /\ st' = "Releasing"
    /\ floor' = epoch
    /\ UNCHANGED << owner, epoch, inflight, crs, hw, dfloor, ready, online, netM, netT, acks,
                    crashes >>

(* Every DPU has said that this epoch is gone from it. *)
ReleaseFinish ==
    /\ st = "Releasing"
    /\ \A d \in DPUs : <<d, epoch>> \in acks
    /\ st' = "Available"
    /\ owner' = None
    /\ UNCHANGED << epoch, floor, inflight, crs, hw, dfloor, ready, online, netM, netT, acks,
                    crashes >>

(* A write lands at any time, also long after the release. *)
Flush(t) ==
    \E e \in inflight[t] :
       /\ inflight' = [inflight EXCEPT ![t] = @ \ {e}]
       /\ crs' = [crs EXCEPT ![t] = @ \cup {e}]
       /\ UNCHANGED << st, owner, epoch, floor, hw, dfloor, ready, online, netM, netT, acks,
                       crashes >>

Cleanup(t) ==
    \E e \in crs[t] :
       /\ ~(st = "Bound" /\ owner = t /\ epoch = e)
       /\ crs' = [crs EXCEPT ![t] = @ \ {e}]
       /\ UNCHANGED << st, owner, epoch, floor, inflight, hw, dfloor, ready, online, netM, netT,
                       acks, crashes >>

(* The DPU loads the floor, drops what is at or under it, and reports. *)
Sync(d) ==
    /\ online[d]
    /\ netM
    /\ ~ready[d] \/ dfloor[d] # floor \/ (floor > 0 /\ <<d, floor>> \notin acks)
    /\ dfloor' = [dfloor EXCEPT ![d] = floor]
    /\ ready' = [ready EXCEPT ![d] = TRUE]
    /\ hw' = [hw EXCEPT ![d] = [t \in Tenants |-> {e \in hw[d][t] : e > floor}]]
    /\ acks' = IF floor > 0 THEN acks \cup {<<d, floor>>} ELSE acks
    /\ UNCHANGED << st, owner, epoch, floor, inflight, crs, online, netM, netT, crashes >>

(* After a crash the floor is 0 until it is loaded: programming then would *)
(* let every old epoch in.                                                 *)
Program(d, t) ==
    /\ online[d]
    /\ LoadedCheck => ready[d]
    /\ netT[t]
    /\ \/ \E e \in crs[t] :
             /\ FloorCheck => e > dfloor[d]
             /\ e \notin hw[d][t]
             /\ \A u \in Tenants \ {t} : hw[d][u] = {}
             /\ hw' = [hw EXCEPT ![d][t] = @ \cup {e}]
       \/ \E e \in hw[d][t] :
             /\ e \notin crs[t]
             /\ hw' = [hw EXCEPT ![d][t] = @ \ {e}]
    /\ UNCHANGED << st, owner, epoch, floor, inflight, crs, dfloor, ready, online, netM, netT,
                    acks, crashes >>

--------------------------------------------------------------------------
Crash(d) ==
    /\ online[d]
    /\ crashes < MaxCrash
    /\ crashes' = crashes + 1
    /\ online' = [online EXCEPT ![d] = FALSE]
    /\ ready' = [ready EXCEPT ![d] = FALSE]
    /\ dfloor' = [dfloor EXCEPT ![d] = 0]
    /\ hw' = [hw EXCEPT ![d] = E]
    /\ UNCHANGED << st, owner, epoch, floor, inflight, crs, netM, netT, acks >>

Boot(d) ==
    /\ ~online[d]
    /\ online' = [online EXCEPT ![d] = TRUE]
    /\ UNCHANGED << st, owner, epoch, floor, inflight, crs, hw, dfloor, ready, netM, netT, acks,
                    crashes >>

Cut ==
    /\ crashes < MaxCrash
    /\ crashes' = crashes + 1
    /\ \/ netM /\ netM' = FALSE /\ UNCHANGED netT
       \/ \E t \in Tenants : netT[t] /\ netT' = [netT EXCEPT ![t] = FALSE] /\ UNCHANGED netM
    /\ UNCHANGED << st, owner, epoch, floor, inflight, crs, hw, dfloor, ready, online, acks >>

HealM ==
    /\ ~netM
    /\ netM' = TRUE
    /\ UNCHANGED << st, owner, epoch, floor, inflight, crs, hw, dfloor, ready, online, netT,
                    acks, crashes >>

HealT(t) ==
    /\ ~netT[t]
    /\ netT' = [netT EXCEPT ![t] = TRUE]
    /\ UNCHANGED << st, owner, epoch, floor, inflight, crs, hw, dfloor, ready, online, netM,
                    acks, crashes >>

--------------------------------------------------------------------------
Next ==
    \/ ReleaseStart
    \/ ReleaseFinish
    \/ Cut
    \/ HealM
    \/ \E t \in Tenants :
          \/ Assign(t)
          \/ Flush(t)
          \/ Cleanup(t)
          \/ HealT(t)
    \/ \E d \in DPUs :
          \/ Sync(d)
          \/ Crash(d)
          \/ Boot(d)
          \/ \E t \in Tenants : Program(d, t)

Fair ==
    /\ WF_vars(ReleaseFinish)
    /\ WF_vars(HealM)
    /\ \A t \in Tenants : WF_vars(Flush(t)) /\ WF_vars(Cleanup(t)) /\ WF_vars(HealT(t))
    /\ \A d \in DPUs :
          /\ WF_vars(Sync(d))
          /\ WF_vars(Boot(d))
          /\ \A t \in Tenants : WF_vars(Program(d, t))

Spec == Init /\ [][Next]_vars /\ Fair

--------------------------------------------------------------------------
(* Over all DPUs of the node at once. *)
Isolation == Cardinality({t \in Tenants : \E d \in DPUs : hw[d][t] # {}}) <= 1

PoolClean == st = "Available" => \A d \in DPUs, t \in Tenants : hw[d][t] = {}

Reclaimable == (st = "Releasing") ~> (st # "Releasing")

Converges ==
    \A t \in Tenants :
       <>[](st = "Bound" /\ owner = t) => <>[](\A d \in DPUs : epoch \in hw[d][t])
==========================================================================
