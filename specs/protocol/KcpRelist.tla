----------------------------- MODULE KcpRelist -----------------------------
(* Why labels alone do not repair kcpStorage: the acknowledged hand-over   *)
(* of kcpStorageFixed, and a restarted syncer that lists an old value.     *)
EXTENDS FiniteSets, Naturals

CONSTANTS CLUSTERS   \* the clusters

SyncStates == {"nil", "Empty", "Sync"}

VARIABLES
    ns,         \* [CLUSTERS -> SyncStates] the decision
    pvc,        \* [CLUSTERS -> SyncStates] its copy on the claim
    cache,      \* [CLUSTERS -> SyncStates] what each syncer saw last
    pvc_state,  \* [CLUSTERS -> SyncStates] what each syncer acts on
    ack,        \* [CLUSTERS -> SyncStates] what each syncer reported last
    seen        \* [CLUSTERS -> set of SyncStates] every value the label has had

vars == << ns, pvc, cache, pvc_state, ack, seen >>

F(x) == [c \in CLUSTERS |-> x]

Init ==
    /\ ns        = F("nil")
    /\ pvc       = F("nil")
    /\ cache     = F("nil")
    /\ pvc_state = F("nil")
    /\ ack       = F("nil")
    /\ seen      = F({"nil"})

Assign(c) ==
    /\ \A x \in CLUSTERS : ns[x] = "nil"
    /\ ack[c] = "nil"
    /\ ns' = [ns EXCEPT ![c] = "Sync"]
    /\ UNCHANGED << pvc, cache, pvc_state, ack, seen >>

Drain(c) ==
    /\ ns[c] = "Sync"
    /\ ns' = [ns EXCEPT ![c] = "Empty"]
    /\ UNCHANGED << pvc, cache, pvc_state, ack, seen >>

Release(c) ==
    /\ ns[c] = "Empty"
    /\ ack[c] = "Empty"
    /\ ns' = [ns EXCEPT ![c] = "nil"]
    /\ UNCHANGED << pvc, cache, pvc_state, ack, seen >>

PVCC ==
    /\ pvc # ns
    /\ pvc' = ns
    /\ seen' = [c \in CLUSTERS |-> seen[c] \cup {ns[c]}]
    /\ UNCHANGED << ns, cache, pvc_state, ack >>

Watch(c) ==
    /\ cache[c] # pvc[c]
    /\ cache' = [cache EXCEPT ![c] = pvc[c]]
    /\ UNCHANGED << ns, pvc, pvc_state, ack, seen >>

(* An old "Sync" is read as a new one: a label has no epoch. *)
Relist(c) ==
    /\ \E v \in seen[c] : cache' = [cache EXCEPT ![c] = v]
    /\ UNCHANGED << ns, pvc, pvc_state, ack, seen >>

Apply(c) ==
    /\ pvc_state[c] # cache[c]
    /\ pvc_state' = [pvc_state EXCEPT ![c] = cache[c]]
    /\ UNCHANGED << ns, pvc, cache, ack, seen >>

Report(c) ==
    /\ ack[c] # pvc_state[c]
    /\ ack' = [ack EXCEPT ![c] = pvc_state[c]]
    /\ UNCHANGED << ns, pvc, cache, pvc_state, seen >>

Next ==
    \/ PVCC
    \/ \E c \in CLUSTERS :
          \/ Assign(c)
          \/ Drain(c)
          \/ Release(c)
          \/ Watch(c)
          \/ Relist(c)
          \/ Apply(c)
          \/ Report(c)

Spec == Init /\ [][Next]_vars

(* False. *)
Usable == Cardinality({c \in CLUSTERS : pvc_state[c] = "Sync"}) <= 1
=============================================================================
