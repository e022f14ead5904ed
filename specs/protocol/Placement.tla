----------------------------- MODULE Placement -----------------------------
(* One namespace and its volume move between clusters, with no clock.      *)
(*                                                                         *)
(* A single record at the hub, the grant, says who owns the namespace. An  *)
(* owner is asked to leave (Revoking); it stops, closes its epoch for      *)
(* good, makes a last copy and acknowledges (Released); only then the next *)
(* owner is granted, under a new epoch. An owner that lost power can be    *)
(* fenced when a person attests that it is off (ForceRelease).             *)
(*                                                                         *)
(* Views are stale, a restarted syncer may list any past state, syncers    *)
(* crash, clusters lose power. Each constant that is a boolean switches    *)
(* one guard off, so that a run can show that the guard is needed.         *)
EXTENDS Naturals, FiniteSets

CONSTANTS
    Clusters,         \* the clusters
    MaxEpoch,         \* bound on grants
    MaxW,             \* bound on writes
    none,             \* no owner
    NeedAck,          \* FALSE: grant onward without the owner's acknowledgement
    DurableRel,       \* FALSE: a crash forgets which epochs are closed
    CloseFirst,       \* FALSE: the last copy may be made before the epoch is closed
    FinalSyncOn,      \* FALSE: no last copy, the latest background copy counts
    PermitFresh,      \* FALSE: the permit is decided on the cached view
    PermitSeesForce,  \* FALSE: the permit ignores a ForceRelease for this epoch
    BootNeedsPermit,  \* FALSE: a node that boots restarts what it ran before
    ForceBound,       \* FALSE: a ForceRelease counts for any epoch of that owner
    Truthful,         \* FALSE: a ForceRelease may be made while the owner has power
    FillMarked,       \* FALSE: a fill that has begun counts as filled
    StartChecksRel,   \* FALSE: starting does not look whether the epoch is closed
    StopFirst,        \* FALSE: an epoch may be closed while it runs
    TimeTravel,       \* a restarted syncer may list any past value of the grant
    AllowForce,       \* power loss and ForceRelease happen at all
    PinsComplete      \* FALSE: the acknowledgement does not carry the last image

VARIABLES
    hub,    \* the grant: [o: owner, e: epoch, ph: phase, pin: content to fill from]
    hist,   \* every value that hub has had
    view,   \* [Clusters -> grant] what each syncer saw last
    rel,    \* [Clusters -> epoch] highest epoch closed there; durable
    perm,   \* [Clusters -> epoch] permit to start that epoch; 0: none
    run,    \* [Clusters -> epoch] epoch whose processes run; 0: none
    was,    \* [Clusters -> epoch] epoch that the node would restart by itself; 0: none
    off,    \* [Clusters -> BOOLEAN] without power
    fil,    \* [Clusters -> epoch] epoch whose fill has begun
    pop,    \* [Clusters -> epoch] epoch whose fill is complete
    fin,    \* [Clusters -> epoch] epoch whose last copy is made
    vol,    \* [Clusters -> set of writes] content of the volume
    img,    \* [epoch -> set of writes] content of the image of each epoch
    made,   \* [epoch -> BOOLEAN] that image exists
    nw,     \* number of writes so far
    must,   \* writes acknowledged to the user and not declared lost
    force   \* ForceReleases: set of <<owner, epoch>>

vars == << hub, hist, view, rel, perm, run, was, off, fil, pop, fin, vol, img, made, nw, must,
           force >>

U0 == [o |-> none, e |-> 0, ph |-> "Unassigned", pin |-> {}]

Init ==
    /\ hub   = U0
    /\ hist  = {U0}
    /\ view  = [c \in Clusters |-> U0]
    /\ rel   = [c \in Clusters |-> 0]
    /\ perm  = [c \in Clusters |-> 0]
    /\ run   = [c \in Clusters |-> 0]
    /\ was   = [c \in Clusters |-> 0]
    /\ off   = [c \in Clusters |-> FALSE]
    /\ fil   = [c \in Clusters |-> 0]
    /\ pop   = [c \in Clusters |-> 0]
    /\ fin   = [c \in Clusters |-> 0]
    /\ vol   = [c \in Clusters |-> {}]
    /\ img   = [e \in 0..MaxEpoch |-> {}]
    /\ made  = [e \in 0..MaxEpoch |-> FALSE]
    /\ nw    = 0
    /\ must  = {}
    /\ force = {}

-----------------------------------------------------------------------------
(* The hub. Every write is a compare-and-set, so each step sees the live   *)
(* record. hist is not mentioned below: Next adds to it.                   *)

(* Grants follow one another only through Released or Fenced: until then   *)
(* the old owner may still run.                                            *)
Grant(d) ==
    /\ hub.e < MaxEpoch
    /\ \/ hub.ph \in {"Unassigned", "Released", "Fenced"}
       \/ ~NeedAck /\ hub.ph \in {"Granted", "Revoking"} /\ hub.o # d
    /\ hub' = [o   |-> d,
               e   |-> hub.e + 1,
               ph  |-> "Granted",
               pin |-> IF hub.ph \in {"Released", "Fenced"} \/ ~NeedAck THEN hub.pin ELSE {}]
    /\ UNCHANGED << view, rel, perm, run, was, off, fil, pop, fin, vol, img, made, nw, must,
                    force >>

Revoke ==
    /\ hub.ph = "Granted"
    /\ hub' = [hub EXCEPT !.ph = "Revoking"]
    /\ UNCHANGED << view, rel, perm, run, was, off, fil, pop, fin, vol, img, made, nw, must,
                    force >>

(* A person attests that the owner is off. It need be true only now: the   *)
(* owner may come back later, and the permit then sees this record.        *)
AskForce ==
    /\ AllowForce
    /\ hub.ph \in {"Granted", "Revoking"}
    /\ Truthful => off[hub.o]
    /\ force' = force \cup {<<hub.o, hub.e>>}
    /\ UNCHANGED << hub, view, rel, perm, run, was, off, fil, pop, fin, vol, img, made, nw,
                    must >>

(* The next owner starts from the last image that exists, or from what the *)
(* fenced one was to be filled with. What is not in it is declared lost,   *)
(* here and nowhere else. A ForceRelease for an older epoch says nothing   *)
(* about this one.                                                         *)
Fence ==
    /\ hub.ph \in {"Granted", "Revoking"}
    /\ \E f \in force : f[1] = hub.o /\ (ForceBound => f[2] = hub.e)
    /\ LET p == IF made[hub.e] THEN img[hub.e] ELSE hub.pin IN
       /\ hub' = [hub EXCEPT !.ph = "Fenced", !.pin = p]
       /\ must' = p
    /\ UNCHANGED << view, rel, perm, run, was, off, fil, pop, fin, vol, img, made, nw, force >>

-----------------------------------------------------------------------------
(* The syncer of cluster c. *)

On(c) == ~off[c]

Observe(c) ==
    /\ On(c)
    /\ view[c] # hub
    /\ view' = [view EXCEPT ![c] = hub]
    /\ UNCHANGED << hub, rel, perm, run, was, off, fil, pop, fin, vol, img, made, nw, must,
                    force >>

(* A re-list may be answered by an API server that lags behind. *)
Relist(c) ==
    /\ TimeTravel
    /\ On(c)
    /\ \E h \in hist : h # view[c] /\ view' = [view EXCEPT ![c] = h]
    /\ UNCHANGED << hub, rel, perm, run, was, off, fil, pop, fin, vol, img, made, nw, must,
                    force >>

(* A grant v lets c use the volume unless c has closed that epoch: old     *)
(* news may say Granted long after.                                        *)
MayUse(v, c) ==
    /\ v.o = c
    /\ v.ph = "Granted"
    /\ v.e > rel[c]

(* Every epoch fills a volume of its own, which is empty at first. *)
FillBegin(c) ==
    /\ On(c)
    /\ MayUse(view[c], c)
    /\ pop[c] < view[c].e
    /\ fil[c] < view[c].e
    /\ run[c] = 0
    /\ fil' = [fil EXCEPT ![c] = view[c].e]
    /\ vol' = [vol EXCEPT ![c] = {}]
    /\ UNCHANGED << hub, view, rel, perm, run, was, off, pop, fin, img, made, nw, must, force >>

FillEnd(c) ==
    /\ On(c)
    /\ fil[c] # 0
    /\ view[c].e = fil[c]
    /\ MayUse(view[c], c)
    /\ pop[c] < fil[c]
    /\ vol' = [vol EXCEPT ![c] = view[c].pin]
    /\ pop' = [pop EXCEPT ![c] = fil[c]]
    /\ UNCHANGED << hub, view, rel, perm, run, was, off, fil, fin, img, made, nw, must, force >>

(* A permit is given on a fresh read of the grant: the cache may show a    *)
(* grant that has been taken away. It is refused if a ForceRelease names   *)
(* this epoch: the hub may be about to fence on the word that c is off.    *)
Permit(c) ==
    /\ On(c)
    /\ perm[c] = 0
    /\ run[c] = 0
    /\ LET v == IF PermitFresh THEN hub ELSE view[c] IN
       /\ MayUse(v, c)
       /\ IF FillMarked THEN pop[c] = v.e ELSE fil[c] = v.e
       /\ PermitSeesForce => <<c, v.e>> \notin force
       /\ perm' = [perm EXCEPT ![c] = v.e]
    /\ UNCHANGED << hub, view, rel, run, was, off, fil, pop, fin, vol, img, made, nw, must,
                    force >>

(* Between permit and start the epoch may have been closed; then the       *)
(* permit is void.                                                         *)
Start(c) ==
    /\ On(c)
    /\ perm[c] # 0
    /\ run[c] = 0
    /\ perm' = [perm EXCEPT ![c] = 0]
    /\ IF StartChecksRel => rel[c] < perm[c]
       THEN /\ run' = [run EXCEPT ![c] = perm[c]]
            /\ was' = [was EXCEPT ![c] = perm[c]]
       ELSE UNCHANGED << run, was >>
    /\ UNCHANGED << hub, view, rel, off, fil, pop, fin, vol, img, made, nw, must, force >>

Write(c) ==
    /\ run[c] # 0
    /\ nw < MaxW
    /\ nw' = nw + 1
    /\ vol' = [vol EXCEPT ![c] = @ \cup {nw + 1}]
    /\ must' = must \cup {nw + 1}
    /\ UNCHANGED << hub, view, rel, perm, run, was, off, fil, pop, fin, img, made, force >>

(* A background copy, kept under its epoch. After the close none is made:  *)
(* it might come after the last one.                                       *)
Replicate(c) ==
    /\ On(c)
    /\ pop[c] # 0
    /\ rel[c] < pop[c]
    /\ img[pop[c]] # vol[c]
    /\ img' = [img EXCEPT ![pop[c]] = vol[c]]
    /\ made' = [made EXCEPT ![pop[c]] = TRUE]
    /\ UNCHANGED << hub, view, rel, perm, run, was, off, fil, pop, fin, vol, nw, must, force >>

(* Stop what runs, and take away what the node would restart by itself.    *)
Stop(c) ==
    /\ On(c)
    /\ run[c] # 0 \/ was[c] # 0
    /\ view[c].o # c \/ view[c].ph # "Granted" \/ view[c].e # run[c]
    /\ run' = [run EXCEPT ![c] = 0]
    /\ was' = [was EXCEPT ![c] = 0]
    /\ UNCHANGED << hub, view, rel, perm, off, fil, pop, fin, vol, img, made, nw, must, force >>

Leaving(c) ==
    /\ On(c)
    /\ view[c].o = c
    /\ view[c].ph = "Revoking"

(* From here on c can never start this epoch again, whatever it reads. So  *)
(* nothing may run any more, nor come back at a boot.                      *)
Close(c) ==
    /\ Leaving(c)
    /\ StopFirst => run[c] = 0 /\ was[c] = 0
    /\ rel[c] < view[c].e
    /\ rel' = [rel EXCEPT ![c] = view[c].e]
    /\ UNCHANGED << hub, view, perm, run, was, off, fil, pop, fin, vol, img, made, nw, must,
                    force >>

(* The last copy: of the volume if this epoch filled it, else of what it   *)
(* was to be filled with. Before the close a write could follow it.        *)
FinalSync(c) ==
    /\ Leaving(c)
    /\ fin[c] < view[c].e
    /\ IF CloseFirst THEN rel[c] >= view[c].e ELSE run[c] = 0
    /\ LET e == view[c].e IN
       /\ img' = [img EXCEPT ![e] = IF pop[c] = e
                                    THEN (IF FinalSyncOn THEN vol[c] ELSE @)
                                    ELSE view[c].pin]
       /\ made' = [made EXCEPT ![e] = TRUE]
       /\ fin' = [fin EXCEPT ![c] = e]
    /\ UNCHANGED << hub, view, rel, perm, run, was, off, fil, pop, vol, nw, must, force >>

(* The acknowledgement and the pins are one write against the live grant:  *)
(* in two, the next owner could be granted in between and filled with the  *)
(* pins of before.                                                         *)
Ack(c) ==
    /\ On(c)
    /\ hub.o = c
    /\ hub.ph = "Revoking"
    /\ fin[c] = hub.e
    /\ CloseFirst \/ rel[c] = hub.e
    /\ hub' = [hub EXCEPT !.ph = "Released", !.pin = IF PinsComplete THEN img[hub.e] ELSE @]
    /\ UNCHANGED << view, rel, perm, run, was, off, fil, pop, fin, vol, img, made, nw, must,
                    force >>

-----------------------------------------------------------------------------
(* Faults. *)

(* The syncer dies; its workloads run on. *)
Crash(c) ==
    /\ view[c] # U0 \/ perm[c] # 0
    /\ view' = [view EXCEPT ![c] = U0]
    /\ perm' = [perm EXCEPT ![c] = 0]
    /\ rel' = IF DurableRel THEN rel ELSE [rel EXCEPT ![c] = 0]
    /\ UNCHANGED << hub, run, was, off, fil, pop, fin, vol, img, made, nw, must, force >>

PowerOff(c) ==
    /\ AllowForce
    /\ On(c)
    /\ off' = [off EXCEPT ![c] = TRUE]
    /\ run' = [run EXCEPT ![c] = 0]
    /\ perm' = [perm EXCEPT ![c] = 0]
    /\ view' = [view EXCEPT ![c] = U0]
    /\ rel' = IF DurableRel THEN rel ELSE [rel EXCEPT ![c] = 0]
    /\ UNCHANGED << hub, was, fil, pop, fin, vol, img, made, nw, must, force >>

(* A node that boots waits for a permit of this boot: meanwhile it may     *)
(* have been fenced.                                                       *)
PowerOn(c) ==
    /\ off[c]
    /\ off' = [off EXCEPT ![c] = FALSE]
    /\ run' = IF BootNeedsPermit THEN run ELSE [run EXCEPT ![c] = was[c]]
    /\ UNCHANGED << hub, view, rel, perm, was, fil, pop, fin, vol, img, made, nw, must, force >>

-----------------------------------------------------------------------------
Step ==
    \/ \E d \in Clusters : Grant(d)
    \/ Revoke
    \/ AskForce
    \/ Fence
    \/ \E c \in Clusters :
          \/ Observe(c)
          \/ Relist(c)
          \/ FillBegin(c)
          \/ FillEnd(c)
          \/ Permit(c)
          \/ Start(c)
          \/ Write(c)
          \/ Replicate(c)
          \/ Stop(c)
          \/ Close(c)
          \/ FinalSync(c)
          \/ Ack(c)
          \/ Crash(c)
          \/ PowerOff(c)
          \/ PowerOn(c)

Next ==
    /\ Step
    /\ hist' = IF TimeTravel THEN hist \cup {hub'} ELSE hist

Spec == Init /\ [][Next]_vars

-----------------------------------------------------------------------------
(* At most one cluster uses the volume. *)
UsableByAtMostOne == Cardinality({c \in Clusters : run[c] # 0}) <= 1

(* Who runs is the owner, at the present epoch. *)
OnlyTheOwnerRuns == \A c \in Clusters : run[c] # 0 => hub.o = c /\ hub.e = run[c]

(* An owner that runs has every write that was acknowledged. *)
NoLoss == \A c \in Clusters : (run[c] # 0 /\ run[c] = hub.e) => must \subseteq vol[c]

(* Between two owners nobody runs. *)
ReleasedIsStill ==
    hub.ph \in {"Released", "Fenced", "Unassigned"} => \A c \in Clusters : run[c] = 0
=============================================================================
