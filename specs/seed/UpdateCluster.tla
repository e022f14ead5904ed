--------------------------- MODULE UpdateCluster ---------------------------
(* Requests change a cluster one after the other, under a lock: the seed   *)
(* as written, its defects kept.                                           *)
(*                                                                         *)
(* Users submit requests, which are numbered, checked, and pushed; a       *)
(* worker takes the lock, applies the pushed version, and on failure a     *)
(* worker applies the last good version again.                             *)
(*                                                                         *)
(* Defects:                                                                *)
(*  1. ApplyStart with an outdated version lets the worker go and keeps    *)
(*     the lock, for ever.                                                 *)
(*  2. PushToPending stays enabled after it pushed: the second time it     *)
(*     rejects the request, though it is queued or even applied. In the    *)
(*     end every request is "rejected".                                    *)
(*  3. "success", "failure" and "rolledback" are never assigned.           *)
(*  4. SpawnWorker does not ask whether there is anything to do. The same  *)
(*     version is applied over and over, also the one that failed, right   *)
(*     after its rollback.                                                 *)
(*  5. "Outdated" is measured against the last submission, not the last    *)
(*     valid one: a valid request is dropped for a later one that is then  *)
(*     rejected.                                                           *)
(*  6. NoConcurrentUpdate looks for a request in state "working". Only     *)
(*     workers have that state: it cannot fail.                            *)
(*  7. If confOK is FALSE, workers are started and sent home for ever.     *)
(*  8. The lock is a boolean: nobody can say whose it is.                  *)
EXTENDS Integers, FiniteSets

CONSTANTS
    _Requests,  \* the requests that users may submit
    _Workers,   \* the workers
    NULL        \* no version

VARIABLES
    confOK,          \* whether a valid configuration can be had; fixed at the start
    lastVSubmitted,  \* number of the latest submission
    lastVOK,         \* last version that was applied to the end
    toApply,         \* version to be applied next
    cluster,         \* [v, st] the version on the cluster and how it stands
    requests,        \* [_Requests -> [st, v]]
    workers,         \* [_Workers -> [st, v]]
    lock             \* taken or not (defect 8)

vars == << confOK, lastVSubmitted, lastVOK, toApply, cluster, requests, workers, lock >>

TypeInvariants ==
    /\ confOK \in BOOLEAN
    /\ lock \in BOOLEAN
    /\ cluster.st \in {"idle", "starting", "partial", "failed"}
    /\ \A r \in _Requests :
          requests[r].st \in
             {"waiting",         \* not sent yet
              "submitted",       \* numbered
              "rejected",        \* refused, or pushed twice (defect 2)
              "valid",           \* checked
              "processing", "partial", "partialFailure",   \* declared only
              "success", "failure", "rolledback"}          \* declared only (defect 3)
    /\ \A w \in _Workers : workers[w].st \in {"waiting", "starting", "working"}

Init ==
    /\ requests = [r \in _Requests |-> [st |-> "waiting", v |-> NULL]]
    /\ workers = [w \in _Workers |-> [st |-> "waiting", v |-> NULL]]
    /\ cluster = [v |-> 0, st |-> "idle"]
    /\ lastVOK = 0
    /\ lastVSubmitted = 0
    /\ toApply = 0
    /\ confOK \in BOOLEAN
    /\ lock = FALSE

-----------------------------------------------------------------------------
Submit(r) ==
    LET newV == lastVSubmitted + 1 IN
    /\ requests[r].st = "waiting"
    /\ lastVSubmitted' = newV
    /\ requests' = [requests EXCEPT ![r].st = "submitted", ![r].v = newV]
    /\ UNCHANGED << confOK, lastVOK, toApply, cluster, workers, lock >>

Initialcheck(r) ==
    /\ requests[r].st = "submitted"
    /\ \E ok \in BOOLEAN :
          requests' = [requests EXCEPT ![r].st = IF ok THEN "valid" ELSE "rejected"]
    /\ UNCHANGED << confOK, lastVSubmitted, lastVOK, toApply, cluster, workers, lock >>

(* Defect 2: the first branch leaves the request "valid", so this action   *)
(* fires again and takes the second branch.                                *)
PushToPending(r) ==
    /\ requests[r].st = "valid"
    /\ IF toApply < requests[r].v
       THEN /\ toApply' = requests[r].v
            /\ UNCHANGED requests
       ELSE /\ requests' = [requests EXCEPT ![r].st = "rejected"]
            /\ UNCHANGED toApply
    /\ UNCHANGED << confOK, lastVSubmitted, lastVOK, cluster, workers, lock >>

(* Defect 4: no guard asks whether the version is applied already.         *)
SpawnWorker(w) ==
    /\ workers[w].st = "waiting"
    /\ lock = FALSE
    /\ cluster.st \in {"idle", "failed"}
    /\ LET v == IF cluster.st = "idle" THEN toApply ELSE lastVOK IN
       workers' = [workers EXCEPT ![w].v = v, ![w].st = "starting"]
    /\ lock' = TRUE
    /\ UNCHANGED << confOK, lastVSubmitted, lastVOK, toApply, requests, cluster >>

Released(w) == [workers EXCEPT ![w].st = "waiting", ![w].v = NULL]

ApplyStart(w) ==
    /\ workers[w].st = "starting"
    /\ IF workers[w].v = lastVSubmitted \/ workers[w].v = lastVOK   \* defect 5
       THEN IF confOK
            THEN /\ cluster' = [v |-> workers[w].v, st |-> "partial"]
                 /\ workers' = [workers EXCEPT ![w].st = "working"]
                 /\ UNCHANGED lock
            ELSE /\ lock' = FALSE   \* defect 7: SpawnWorker is enabled again
                 /\ workers' = Released(w)
                 /\ UNCHANGED cluster
       ELSE /\ workers' = Released(w)
            /\ UNCHANGED << cluster, lock >>   \* defect 1: the lock is kept
    /\ UNCHANGED << confOK, lastVSubmitted, lastVOK, toApply, requests >>

(* A rollback always works; both values of ok then give the same state.    *)
ApplyFinish(w) ==
    /\ workers[w].st = "working"
    /\ lock' = FALSE
    /\ \E ok \in BOOLEAN :
          IF ok \/ workers[w].v = lastVOK
          THEN /\ cluster' = [cluster EXCEPT !.st = "idle"]
               /\ lastVOK' = workers[w].v
          ELSE /\ cluster' = [cluster EXCEPT !.st = "failed"]
               /\ UNCHANGED lastVOK
    /\ workers' = Released(w)
    /\ UNCHANGED << confOK, lastVSubmitted, toApply, requests >>

-----------------------------------------------------------------------------
Next ==
    \/ \E r \in _Requests :
          \/ Submit(r)
          \/ Initialcheck(r)
          \/ PushToPending(r)
    \/ \E w \in _Workers :
          \/ SpawnWorker(w)
          \/ ApplyStart(w)
          \/ ApplyFinish(w)

Fairness ==
    \A r \in _Requests, w \in _Workers :
       /\ WF_vars(Submit(r))
       /\ WF_vars(Initialcheck(r))
       /\ WF_vars(PushToPending(r))
       /\ WF_vars(SpawnWorker(w))
       /\ WF_vars(ApplyStart(w))
       /\ WF_vars(ApplyFinish(w))

Spec ==
    /\ Init
    /\ [][Next]_vars
    /\ Fairness

-----------------------------------------------------------------------------
(* Defect 6. *)
NoConcurrentUpdate ==
    [](Cardinality({r \in DOMAIN requests : requests[r].st = "working"}) < 2)

(* False by defect 4: the cluster never comes to rest. *)
NoPartialUpdateTermination == <>[](cluster.st = "idle")

(* Says only that every request is submitted, not what becomes of it. *)
EveryReqIsProcessed == <>[](~\E r \in _Requests : requests[r].st = "waiting")

THEOREM Spec => []TypeInvariants
THEOREM Spec => NoPartialUpdateTermination
=============================================================================
