----------------------------- MODULE kcpStorage -----------------------------
(* Which cluster may use a volume: the seed as written, its defects kept.  *)
(*                                                                         *)
(* A namespace controller decides on which cluster the namespace lives, a  *)
(* PVC controller copies that decision onto the claim, and one syncer per  *)
(* cluster reads the decision and acts on it.                              *)
(*                                                                         *)
(* Defects:                                                                *)
(*  1. A cluster is un-assigned and another one assigned without asking    *)
(*     the first: its syncer may not have looked yet, so both may use the  *)
(*     volume (Inv_UsableByAtMostOne is false from two clusters on).       *)
(*  2. Inv_NSAtMostOneCluster and Inv_PVCAtMostOneCluster count a set that *)
(*     holds one boolean: they hold whatever the system does.              *)
(*  3. The syncer reads ns and nothing reads pvc: the PVC controller is on *)
(*     no path from the decision to its effect.                            *)
(*  4. "Empty" is declared and never assigned.                             *)
(*  5. Fairness is for Next as a whole, so each single process may starve. *)
(*  6. TypeOK looks at ns only. There is no data, user, crash, partition.  *)
EXTENDS FiniteSets, Naturals, Sequences, TLC

CONSTANTS
    CLUSTERS,  \* the clusters that the namespace may be placed on
    NC,        \* name of the namespace controller's process
    PVCC,      \* name of the PVC controller's process
    U          \* name of a user's process, which the seed never wrote

ASSUME Cardinality(CLUSTERS) > 0

SyncStates == {"nil", "Empty", "Sync"}

VARIABLES
    ns,        \* [CLUSTERS -> SyncStates] the decision, as labels on the namespace
    pvc,       \* [CLUSTERS -> SyncStates] its copy, as labels on the claim
    pc,        \* [ProcSet -> label] where each process stands
    pvc_state  \* [CLUSTERS -> SyncStates] what each syncer believes and acts on

vars == << ns, pvc, pc, pvc_state >>

ProcSet == {NC} \cup {PVCC} \cup CLUSTERS

Init ==
    /\ ns = [c \in CLUSTERS |-> "nil"]
    /\ pvc = [c \in CLUSTERS |-> "nil"]
    /\ pvc_state = [self \in CLUSTERS |-> "nil"]
    /\ pc = [self \in ProcSet |-> CASE self = NC         -> "Start_"
                                    [] self = PVCC       -> "Start_P"
                                    [] self \in CLUSTERS -> "Start"]

-----------------------------------------------------------------------------
(* Assign a namespace that is nowhere, or take it away from its cluster.   *)
(* Defect 1 is the second branch: no word from the syncer is waited for.   *)
Start_ ==
    /\ pc[NC] = "Start_"
    /\ \/ /\ \A c \in CLUSTERS : ns[c] = "nil"
          /\ \E c \in CLUSTERS : ns' = [ns EXCEPT ![c] = "Sync"]
       \/ \E c \in {x \in CLUSTERS : ns[x] = "Sync"} : ns' = [ns EXCEPT ![c] = "nil"]
    /\ pc' = [pc EXCEPT ![NC] = "Start_"]
    /\ UNCHANGED << pvc, pvc_state >>

NamespaceController == Start_

Start_P ==
    /\ pc[PVCC] = "Start_P"
    /\ pvc' = ns
    /\ pc' = [pc EXCEPT ![PVCC] = "Start_P"]
    /\ UNCHANGED << ns, pvc_state >>

PVCController == Start_P

(* Defect 3: one would expect pvc[self] here.                              *)
Start(self) ==
    /\ pc[self] = "Start"
    /\ pvc_state' = [pvc_state EXCEPT ![self] = ns[self]]
    /\ pc' = [pc EXCEPT ![self] = "Start"]
    /\ UNCHANGED << ns, pvc >>

Syncer(self) == Start(self)

(* Never enabled, since every process loops. It stays because the seed has it. *)
Terminating ==
    /\ \A self \in ProcSet : pc[self] = "Done"
    /\ UNCHANGED vars

Next ==
    \/ NamespaceController
    \/ PVCController
    \/ \E self \in CLUSTERS : Syncer(self)
    \/ Terminating

(* Defect 5. *)
Spec ==
    /\ Init
    /\ [][Next]_vars
    /\ WF_vars(Next)

(* False, and not meant to hold: the loops never end. *)
Termination == <>(\A self \in ProcSet : pc[self] = "Done")

-----------------------------------------------------------------------------
(* Defect 6: pvc, pvc_state and pc go unchecked. *)
TypeOK ==
    /\ DOMAIN ns = CLUSTERS
    /\ \A c \in DOMAIN ns : ns[c] \in SyncStates

(* Defect 2, twice: the braces hold one truth value, not a set of clusters. *)
Inv_NSAtMostOneCluster  == Cardinality({\A c \in CLUSTERS : ns[c] = "Sync"}) \leq 1
Inv_PVCAtMostOneCluster == Cardinality({\A c \in CLUSTERS : pvc[c] = "Sync"}) \leq 1

(* This one says what it means, and defect 1 breaks it. *)
Inv_UsableByAtMostOne == Cardinality({c \in CLUSTERS : pvc_state[c] = "Sync"}) \leq 1

Invariants ==
    /\ TypeOK
    /\ Inv_NSAtMostOneCluster
    /\ Inv_PVCAtMostOneCluster
    /\ Inv_UsableByAtMostOne
=============================================================================
