------------------------------ MODULE Migrate ------------------------------
(* A stage before Placement, kept for its leases: one namespace with one   *)
(* volume moves between clusters, and an unreachable owner loses its grant *)
(* when its lease has run out.                                             *)
(*                                                                         *)
(* The grant at the hub is the one record that decides; every hub write is *)
(* a compare-and-set. Each boolean constant switches one guard off.        *)
EXTENDS Naturals, FiniteSets, TLC

CONSTANTS
    Clusters,     \* the clusters
    MaxEpoch,     \* bound on grants
    MaxW,         \* bound on writes
    none,         \* no owner
    SelfFence,    \* FALSE: a lease that runs out stops nothing
    UseLease,     \* FALSE: no leases; starting needs the view only
    NeedAck,      \* FALSE: grant onward without the owner's acknowledgement, as the seed does
    DurableRel,   \* FALSE: which epochs are closed is not noted
    FinalSyncOn,  \* FALSE: acknowledged without a last copy
    Force         \* the hub may take over

VARIABLES
    hub,    \* the grant: [o: owner, e: epoch, ph: phase, pin: content to fill from]
    view,   \* [Clusters -> grant] what each syncer saw last
    rel,    \* [Clusters -> epoch] highest epoch closed there
    run,    \* [Clusters -> epoch] epoch whose processes run; 0: none
    lease,  \* [Clusters -> epoch] epoch for which the cluster has a lease; 0: none
    pop,    \* [Clusters -> epoch] epoch that filled the volume
    fin,    \* [Clusters -> epoch] epoch whose last copy is made
    vol,    \* [Clusters -> set of writes] content of the volume
    img,    \* [epoch -> set of writes] content of the image of each epoch
    nw,     \* number of writes so far
    must    \* writes acknowledged to the user and not declared lost

vars == << hub, view, rel, run, lease, pop, fin, vol, img, nw, must >>

Ph == {"Unassigned", "Granted", "Revoking", "Released", "Fenced"}

Nothing == [o |-> none, e |-> 0, ph |-> "Unassigned", pin |-> {}]

Init ==
    /\ hub   = Nothing
    /\ view  = [c \in Clusters |-> Nothing]
    /\ rel   = [c \in Clusters |-> 0]
    /\ run   = [c \in Clusters |-> 0]
    /\ lease = [c \in Clusters |-> 0]
    /\ pop   = [c \in Clusters |-> 0]
    /\ fin   = [c \in Clusters |-> 0]
    /\ vol   = [c \in Clusters |-> {}]
    /\ img   = [e \in 0..MaxEpoch |-> {}]
    /\ nw    = 0
    /\ must  = {}

-----------------------------------------------------------------------------
(* The hub. *)

Grant(d) ==
    /\ hub.e < MaxEpoch
    /\ \/ hub.ph \in {"Unassigned", "Released", "Fenced"}
       \/ ~NeedAck /\ hub.ph \in {"Granted", "Revoking"} /\ hub.o # d
    /\ hub' = [o   |-> d,
               e   |-> hub.e + 1,
               ph  |-> "Granted",
               pin |-> IF hub.ph = "Fenced" THEN hub.pin ELSE img[hub.e]]
    /\ UNCHANGED << view, rel, run, lease, pop, fin, vol, img, nw, must >>

Revoke ==
    /\ hub.ph = "Granted"
    /\ hub' = [hub EXCEPT !.ph = "Revoking"]
    /\ UNCHANGED << view, rel, run, lease, pop, fin, vol, img, nw, must >>

(* Take-over of an owner that cannot be reached. Clocks drift within a     *)
(* bound, so the hub can wait long enough to know that the lease has run   *)
(* out over there too. What the last image lacks is declared lost here.    *)
LastImage == IF img[hub.e] = {} /\ pop[hub.o] # hub.e THEN hub.pin ELSE img[hub.e]

Fence ==
    /\ Force
    /\ hub.ph \in {"Granted", "Revoking"}
    /\ UseLease => lease[hub.o] # hub.e
    /\ hub' = [hub EXCEPT !.ph = "Fenced", !.pin = LastImage]
    /\ must' = LastImage
    /\ UNCHANGED << view, rel, run, lease, pop, fin, vol, img, nw >>

-----------------------------------------------------------------------------
(* The cluster c. *)

Observe(c) ==
    /\ view' = [view EXCEPT ![c] = hub]
    /\ UNCHANGED << hub, rel, run, lease, pop, fin, vol, img, nw, must >>

Renew(c) ==
    /\ UseLease
    /\ hub.o = c
    /\ hub.ph \in {"Granted", "Revoking"}
    /\ lease' = [lease EXCEPT ![c] = hub.e]
    /\ UNCHANGED << hub, view, rel, run, pop, fin, vol, img, nw, must >>

(* A lease that runs out must stop the processes by itself: nobody else    *)
(* can reach them.                                                         *)
Expire(c) ==
    /\ lease[c] # 0
    /\ lease' = [lease EXCEPT ![c] = 0]
    /\ run' = IF SelfFence THEN [run EXCEPT ![c] = 0] ELSE run
    /\ UNCHANGED << hub, view, rel, pop, fin, vol, img, nw, must >>

Populate(c) ==
    /\ view[c].o = c
    /\ view[c].ph = "Granted"
    /\ pop[c] < view[c].e
    /\ run[c] = 0
    /\ view[c].e > rel[c]
    /\ UseLease => lease[c] = view[c].e
    /\ vol' = [vol EXCEPT ![c] = view[c].pin]
    /\ pop' = [pop EXCEPT ![c] = view[c].e]
    /\ img' = [img EXCEPT ![view[c].e] = view[c].pin]
    /\ UNCHANGED << hub, view, rel, run, lease, fin, nw, must >>

Start(c) ==
    /\ view[c].o = c
    /\ view[c].ph = "Granted"
    /\ view[c].e > rel[c]
    /\ run[c] = 0
    /\ pop[c] = view[c].e
    /\ UseLease => lease[c] = view[c].e
    /\ run' = [run EXCEPT ![c] = view[c].e]
    /\ UNCHANGED << hub, view, rel, lease, pop, fin, vol, img, nw, must >>

Write(c) ==
    /\ run[c] # 0
    /\ nw < MaxW
    /\ nw' = nw + 1
    /\ vol' = [vol EXCEPT ![c] = @ \cup {nw + 1}]
    /\ must' = must \cup {nw + 1}
    /\ UNCHANGED << hub, view, rel, run, lease, pop, fin, img >>

(* Images are kept by epoch, so a late copy of an old owner overwrites     *)
(* nothing of the new one.                                                 *)
Replicate(c) ==
    /\ pop[c] # 0
    /\ rel[c] < pop[c]
    /\ img' = [img EXCEPT ![pop[c]] = vol[c]]
    /\ UNCHANGED << hub, view, rel, run, lease, pop, fin, vol, nw, must >>

Stop(c) ==
    /\ run[c] # 0
    /\ view[c].o # c \/ view[c].ph # "Granted" \/ view[c].e # run[c]
    /\ run' = [run EXCEPT ![c] = 0]
    /\ UNCHANGED << hub, view, rel, lease, pop, fin, vol, img, nw, must >>

(* The epoch is closed for good before the last copy is made. *)
FinalSync(c) ==
    /\ view[c].o = c
    /\ view[c].ph = "Revoking"
    /\ run[c] = 0
    /\ fin[c] < view[c].e
    /\ rel' = IF DurableRel THEN [rel EXCEPT ![c] = view[c].e] ELSE rel
    /\ img' = IF FinalSyncOn /\ pop[c] = view[c].e
              THEN [img EXCEPT ![view[c].e] = vol[c]]
              ELSE IF pop[c] # view[c].e THEN [img EXCEPT ![view[c].e] = view[c].pin] ELSE img
    /\ fin' = [fin EXCEPT ![c] = view[c].e]
    /\ UNCHANGED << hub, view, run, lease, pop, vol, nw, must >>

Ack(c) ==
    /\ hub.o = c
    /\ hub.ph = "Revoking"
    /\ fin[c] = hub.e
    /\ hub' = [hub EXCEPT !.ph = "Released"]
    /\ UNCHANGED << view, rel, run, lease, pop, fin, vol, img, nw, must >>

(* The syncer forgets what it saw; its workloads run on. *)
Crash(c) ==
    /\ view' = [view EXCEPT ![c] = Nothing]
    /\ UNCHANGED << hub, rel, run, lease, pop, fin, vol, img, nw, must >>

-----------------------------------------------------------------------------
Next ==
    \/ \E d \in Clusters : Grant(d)
    \/ Revoke
    \/ Fence
    \/ \E c \in Clusters :
          \/ Observe(c)
          \/ Renew(c)
          \/ Expire(c)
          \/ Populate(c)
          \/ Start(c)
          \/ Write(c)
          \/ Replicate(c)
          \/ Stop(c)
          \/ FinalSync(c)
          \/ Ack(c)
          \/ Crash(c)

Spec == Init /\ [][Next]_vars

-----------------------------------------------------------------------------
UsableByAtMostOne == Cardinality({c \in Clusters : run[c] # 0}) <= 1

OnlyTheOwnerRuns == \A c \in Clusters : run[c] # 0 => hub.o = c /\ hub.e = run[c]

NoLoss == \A c \in Clusters : (run[c] # 0 /\ run[c] = hub.e) => must \subseteq vol[c]

TypeOK == hub.ph \in Ph
=============================================================================
