------------------------ MODULE UpdateClusterFixed ------------------------
(* UpdateCluster repaired: the lock has an owner, a queued request is      *)
(* superseded rather than processed twice, and every outcome a request can *)
(* have is reachable.                                                      *)
EXTENDS Integers, FiniteSets

CONSTANTS
    _Requests,  \* the requests that users may submit
    _Workers,   \* the workers
    NULL,       \* nobody; also no version
    MaxCrash    \* bound on worker crashes

VARIABLES
    confOK,          \* whether a valid configuration can be had; fixed at the start
    lastVSubmitted,  \* number of the latest submission
    lastVOK,         \* last version that was applied to the end
    toApply,         \* version to be applied next
    cluster,         \* [v, st] the version on the cluster and how it stands
    requests,        \* [_Requests -> [st, v]]
    workers,         \* [_Workers -> [st, v, kind]]
    lock,            \* the worker that has it, or NULL
    crashes          \* crashes so far

vars == << confOK, lastVSubmitted, lastVOK, toApply, cluster, requests, workers, lock, crashes >>

ReqSt == {"waiting", "submitted", "rejected", "valid", "processing", "partial", "partialFailure",
          "success", "failure", "rolledback"}

Final == {"rejected", "success", "failure", "rolledback"}

TypeInvariants ==
    /\ confOK \in BOOLEAN
    /\ lock \in _Workers \cup {NULL}
    /\ cluster.st \in {"idle", "partial", "failed"}
    /\ \A r \in _Requests : requests[r].st \in ReqSt
    /\ \A w \in _Workers :
          /\ workers[w].st \in {"waiting", "starting", "working"}
          /\ workers[w].kind \in {NULL, "apply", "rollback"}

Idle == [st |-> "waiting", v |-> NULL, kind |-> NULL]

Init ==
    /\ requests = [r \in _Requests |-> [st |-> "waiting", v |-> NULL]]
    /\ workers = [w \in _Workers |-> Idle]
    /\ cluster = [v |-> 0, st |-> "idle"]
    /\ lastVOK = 0
    /\ lastVSubmitted = 0
    /\ toApply = 0
    /\ confOK \in BOOLEAN
    /\ lock = NULL
    /\ crashes = 0

-----------------------------------------------------------------------------
(* The requests rq, with the one of version v moved to the state `to` if   *)
(* it is in one of the states `from`.                                      *)
Move(rq, v, from, to) ==
    [r \in _Requests |->
       IF rq[r].v = v /\ rq[r].st \in from THEN [rq[r] EXCEPT !.st = to] ELSE rq[r]]

Submit(r) ==
    /\ requests[r].st = "waiting"
    /\ lastVSubmitted' = lastVSubmitted + 1
    /\ requests' = [requests EXCEPT ![r] = [st |-> "submitted", v |-> lastVSubmitted + 1]]
    /\ UNCHANGED << confOK, lastVOK, toApply, cluster, workers, lock, crashes >>

Initialcheck(r) ==
    /\ requests[r].st = "submitted"
    /\ \E s \in {"valid", "rejected"} : requests' = [requests EXCEPT ![r].st = s]
    /\ UNCHANGED << confOK, lastVSubmitted, lastVOK, toApply, cluster, workers, lock, crashes >>

(* A queued request older than this one is superseded in the same step, so *)
(* it is never applied.                                                    *)
PushToPending(r) ==
    /\ requests[r].st = "valid"
    /\ IF toApply < requests[r].v
       THEN /\ toApply' = requests[r].v
            /\ requests' = [Move(requests, toApply, {"processing"}, "rejected")
                              EXCEPT ![r].st = "processing"]
       ELSE /\ requests' = [requests EXCEPT ![r].st = "rejected"]
            /\ UNCHANGED toApply
    /\ UNCHANGED << confOK, lastVSubmitted, lastVOK, cluster, workers, lock, crashes >>

Queued == \E r \in _Requests : requests[r].st = "processing"

(* Something to do: a failure to roll back, or a queued version not yet    *)
(* applied.                                                                *)
SpawnWorker(w) ==
    /\ workers[w].st = "waiting"
    /\ lock = NULL
    /\ \/ /\ cluster.st = "failed"
          /\ workers' = [workers EXCEPT ![w] =
                           [st |-> "starting", v |-> lastVOK, kind |-> "rollback"]]
       \/ /\ cluster.st = "idle"
          /\ Queued
          /\ workers' = [workers EXCEPT ![w] =
                           [st |-> "starting", v |-> toApply, kind |-> "apply"]]
    /\ lock' = w
    /\ UNCHANGED << confOK, lastVSubmitted, lastVOK, toApply, requests, cluster, crashes >>

(* A rollback always starts; an apply only if it is still the version to   *)
(* apply and a valid configuration can be had. When it does not start, the *)
(* lock goes back in both cases; the seed keeps it in one of them.         *)
ApplyStart(w) ==
    /\ workers[w].st = "starting"
    /\ LET v == workers[w].v IN
       IF workers[w].kind = "rollback" \/ (v = toApply /\ confOK)
       THEN /\ cluster' = [v |-> v, st |-> "partial"]
            /\ workers' = [workers EXCEPT ![w].st = "working"]
            /\ requests' = IF workers[w].kind = "apply"
                            THEN Move(requests, v, {"processing"}, "partial") ELSE requests
            /\ UNCHANGED lock
       ELSE /\ workers' = [workers EXCEPT ![w] = Idle]
            /\ lock' = NULL
            /\ requests' = IF v = toApply
                            THEN Move(requests, v, {"processing"}, "failure") ELSE requests
            /\ UNCHANGED cluster
    /\ UNCHANGED << confOK, lastVSubmitted, lastVOK, toApply, crashes >>

(* A rollback always works, an apply may fail. *)
ApplyFinish(w) ==
    /\ workers[w].st = "working"
    /\ \E ok \in (IF workers[w].kind = "rollback" THEN {TRUE} ELSE BOOLEAN) :
          IF ok
          THEN /\ cluster' = [cluster EXCEPT !.st = "idle"]
               /\ lastVOK' = workers[w].v
               /\ requests' = IF workers[w].kind = "apply"
                               THEN Move(requests, workers[w].v, {"partial"}, "success")
                               ELSE [r \in _Requests |->
                                       IF requests[r].st = "partialFailure"
                                       THEN [requests[r] EXCEPT !.st = "rolledback"]
                                       ELSE requests[r]]
          ELSE /\ cluster' = [cluster EXCEPT !.st = "failed"]
               /\ requests' = Move(requests, workers[w].v, {"partial"}, "partialFailure")
               /\ UNCHANGED lastVOK
    /\ lock' = NULL
    /\ workers' = [workers EXCEPT ![w] = Idle]
    /\ UNCHANGED << confOK, lastVSubmitted, toApply, crashes >>

(* A worker dies while holding the lock: its lease runs out, and work done *)
(* so far counts as failed.                                                *)
Crash(w) ==
    /\ crashes < MaxCrash
    /\ workers[w].st # "waiting"
    /\ crashes' = crashes + 1
    /\ lock' = NULL
    /\ workers' = [workers EXCEPT ![w] = Idle]
    /\ IF workers[w].st = "working"
       THEN /\ cluster' = [cluster EXCEPT !.st = "failed"]
            /\ requests' = Move(requests, workers[w].v, {"partial"}, "partialFailure")
       ELSE UNCHANGED << cluster, requests >>
    /\ UNCHANGED << confOK, lastVSubmitted, lastVOK, toApply >>

-----------------------------------------------------------------------------
Next ==
    \/ \E r \in _Requests : Submit(r) \/ Initialcheck(r) \/ PushToPending(r)
    \/ \E w \in _Workers : SpawnWorker(w) \/ ApplyStart(w) \/ ApplyFinish(w) \/ Crash(w)

Fairness ==
    /\ \A r \in _Requests :
          /\ WF_vars(Submit(r))
          /\ WF_vars(Initialcheck(r))
          /\ WF_vars(PushToPending(r))
    /\ WF_vars(\E w \in _Workers : SpawnWorker(w))
    /\ \A w \in _Workers : WF_vars(ApplyStart(w)) /\ WF_vars(ApplyFinish(w))

Spec == Init /\ [][Next]_vars /\ Fairness

-----------------------------------------------------------------------------
NoConcurrentUpdate == Cardinality({w \in _Workers : workers[w].st = "working"}) < 2

LockMeansWork == \A w \in _Workers : (lock = w) <=> (workers[w].st # "waiting")

PartialIffWorking ==
    (cluster.st = "partial") <=> \E w \in _Workers : workers[w].st = "working"

IdleIsLastOK == cluster.st = "idle" => cluster.v = lastVOK

LastOKSucceeded ==
    lastVOK = 0 \/ \E r \in _Requests : requests[r].v = lastVOK /\ requests[r].st = "success"

NeverAppliedIfRefused ==
    \A r \in _Requests : requests[r].st \in {"rejected", "failure"} => requests[r].v # cluster.v

AtMostOneQueued == Cardinality({r \in _Requests : requests[r].st = "processing"}) <= 1

QueuedIsToApply == \A r \in _Requests : requests[r].st = "processing" => requests[r].v = toApply

NoApplicationOfOutdatedReq ==
    [][\A w \in _Workers :
          (workers[w].st = "starting" /\ workers'[w].st = "working" /\ workers[w].kind = "apply") =>
             workers[w].v = toApply]_vars

LastOKMonotone == [][lastVOK' >= lastVOK]_vars

FinalIsFinal ==
    [][\A r \in _Requests : requests[r].st \in Final => requests'[r].st = requests[r].st]_vars

NoPartialUpdateTermination == <>[](cluster.st = "idle")

EveryReqInQueueIsProcessed ==
    \A r \in _Requests : (requests[r].st = "submitted") ~> (requests[r].st \in Final)

EveryReqIsProcessed == <>[](\A r \in _Requests : requests[r].st \in Final)

Quiesces == <>[][FALSE]_vars
=============================================================================
