-------------------------- MODULE kcpStorageFixed --------------------------
(* kcpStorage repaired: un-assigning a cluster is acknowledged before the  *)
(* next one is assigned.                                                   *)
(*                                                                         *)
(* "Empty", declared but unused in the seed, means the cluster has been    *)
(* told to stop using the volume. A cluster is released for assignment     *)
(* elsewhere only once its own syncer has acknowledged "Empty"; it is      *)
(* trusted with the volume again only once it has acknowledged "nil".      *)
(* Syncers act on a cached copy that may be out of date while cut off.     *)
EXTENDS FiniteSets, Naturals

CONSTANTS
    CLUSTERS,     \* the clusters
    WaitRelease,  \* FALSE: release a cluster before its own acknowledgement
    WaitIdle      \* FALSE: assign a cluster before its own idle acknowledgement

ASSUME Cardinality(CLUSTERS) > 0

SyncStates == {"nil", "Empty", "Sync"}

VARIABLES
    ns,         \* [CLUSTERS -> SyncStates] the desired state, one cluster at a time
    pvc,        \* [CLUSTERS -> SyncStates] the label; follows ns
    cache,      \* [CLUSTERS -> SyncStates] what the syncer of each cluster saw last
    pvc_state,  \* [CLUSTERS -> SyncStates] what the syncer acts on
    ack,        \* [CLUSTERS -> SyncStates] what the syncer last reported
    link        \* [CLUSTERS -> BOOLEAN] the syncer can reach the hub

vars == << ns, pvc, cache, pvc_state, ack, link >>

F(x) == [c \in CLUSTERS |-> x]

Init ==
    /\ ns        = F("nil")
    /\ pvc       = F("nil")
    /\ cache     = F("nil")
    /\ pvc_state = F("nil")
    /\ ack       = F("nil")
    /\ link      = F(TRUE)

-----------------------------------------------------------------------------
(* Assigning needs every cluster free, and the chosen one's own word that  *)
(* it has really stopped: an earlier acknowledgement might be for an       *)
(* assignment before this one.                                            *)
Assign(c) ==
    /\ \A x \in CLUSTERS : ns[x] = "nil"
    /\ WaitIdle => ack[c] = "nil"
    /\ ns' = [ns EXCEPT ![c] = "Sync"]
    /\ UNCHANGED << pvc, cache, pvc_state, ack, link >>

Drain(c) ==
    /\ ns[c] = "Sync"
    /\ ns' = [ns EXCEPT ![c] = "Empty"]
    /\ UNCHANGED << pvc, cache, pvc_state, ack, link >>

(* Releasing needs the cluster's own word that it has stopped, not merely  *)
(* that it has been told to.                                               *)
Release(c) ==
    /\ ns[c] = "Empty"
    /\ WaitRelease => ack[c] = "Empty"
    /\ ns' = [ns EXCEPT ![c] = "nil"]
    /\ UNCHANGED << pvc, cache, pvc_state, ack, link >>

PVCController ==
    /\ pvc # ns
    /\ pvc' = ns
    /\ UNCHANGED << ns, cache, pvc_state, ack, link >>

Watch(c) ==
    /\ link[c]
    /\ cache[c] # pvc[c]
    /\ cache' = [cache EXCEPT ![c] = pvc[c]]
    /\ UNCHANGED << ns, pvc, pvc_state, ack, link >>

Apply(c) ==
    /\ pvc_state[c] # cache[c]
    /\ pvc_state' = [pvc_state EXCEPT ![c] = cache[c]]
    /\ UNCHANGED << ns, pvc, cache, ack, link >>

Report(c) ==
    /\ link[c]
    /\ ack[c] # pvc_state[c]
    /\ ack' = [ack EXCEPT ![c] = pvc_state[c]]
    /\ UNCHANGED << ns, pvc, cache, pvc_state, link >>

(* A partition lasts any length of time. For liveness it ends.            *)
Cut(c) ==
    /\ link[c]
    /\ link' = [link EXCEPT ![c] = FALSE]
    /\ UNCHANGED << ns, pvc, cache, pvc_state, ack >>

Heal(c) ==
    /\ ~link[c]
    /\ link' = [link EXCEPT ![c] = TRUE]
    /\ UNCHANGED << ns, pvc, cache, pvc_state, ack >>

-----------------------------------------------------------------------------
Next ==
    \/ PVCController
    \/ \E c \in CLUSTERS :
          \/ Assign(c)
          \/ Drain(c)
          \/ Release(c)
          \/ Watch(c)
          \/ Apply(c)
          \/ Report(c)
          \/ Cut(c)
          \/ Heal(c)

(* Watch and Report need strong fairness: the link may be cut again and    *)
(* again, so they are never enabled for good.                              *)
Fairness ==
    /\ WF_vars(PVCController)
    /\ \A c \in CLUSTERS :
          /\ WF_vars(Release(c))
          /\ WF_vars(Apply(c))
          /\ WF_vars(Heal(c))
          /\ SF_vars(Watch(c))
          /\ SF_vars(Report(c))

Spec == Init /\ [][Next]_vars /\ Fairness

-----------------------------------------------------------------------------
TypeOK ==
    /\ {ns, pvc, cache, pvc_state, ack} \subseteq [CLUSTERS -> SyncStates]
    /\ link \in [CLUSTERS -> BOOLEAN]

Inv_NSAtMostOneCluster  == Cardinality({c \in CLUSTERS : ns[c] # "nil"}) <= 1
Inv_PVCAtMostOneCluster == Cardinality({c \in CLUSTERS : pvc[c] = "Sync"}) <= 1
Inv_UsableByAtMostOne   == Cardinality({c \in CLUSTERS : pvc_state[c] = "Sync"}) <= 1

(* Stronger than the three above: nobody else uses it, and nobody's stale   *)
(* view could still let it.                                                 *)
Inv_OnlyOwnerUses ==
    \A c \in CLUSTERS :
       (pvc_state[c] = "Sync" \/ cache[c] = "Sync" \/ pvc[c] = "Sync") => ns[c] # "nil"

DrainCompletes == \A c \in CLUSTERS : (ns[c] = "Empty") ~> (ns[c] = "nil")

AssignedUses ==
    \A c \in CLUSTERS : (ns[c] = "Sync") ~> (pvc_state[c] = "Sync" \/ ns[c] # "Sync")

IdleAgain == \A c \in CLUSTERS : (ns[c] = "nil") ~> (ack[c] = "nil" \/ ns[c] # "nil")
=============================================================================
