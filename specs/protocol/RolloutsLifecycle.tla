------------------------- MODULE RolloutsLifecycle -------------------------
(* A stage before Rollouts: the life of a request alone. Requests are      *)
(* admitted, superseded, applied, verified or rolled back by workers that  *)
(* share one lease with a token; every request ends with an outcome.       *)
EXTENDS Integers, FiniteSets

CONSTANTS
    Requests,         \* the requests
    Workers,          \* the workers
    MaxCrash,         \* bound on crashes
    MaxRollbackTries  \* a rollback is given up after that many failures

VARIABLES
    req,      \* [Requests -> [st, v]]
    ctr,      \* number of the latest submission
    cluster,  \* [v, st]: "Idle", "Partial" or "Degraded"
    good,     \* last good version; 0 is the empty installation
    lease,    \* [holder, token]
    wtok,     \* [Workers -> token it believes to hold; 0: none]
    alive,    \* [Workers -> BOOLEAN]
    tries,    \* failures of the present rollback
    crashes   \* crashes so far

vars == << req, ctr, cluster, good, lease, wtok, alive, tries, crashes >>

None     == "none"
Terminal == {"Rejected", "Superseded", "Failed", "Succeeded", "RolledBack", "RollbackFailed"}
Active   == {"Applying", "Verifying", "RollingBack"}

Init ==
    /\ req     = [r \in Requests |-> [st |-> "New", v |-> 0]]
    /\ ctr     = 0
    /\ cluster = [v |-> 0, st |-> "Idle"]
    /\ good    = 0
    /\ lease   = [holder |-> None, token |-> 0]
    /\ wtok    = [w \in Workers |-> 0]
    /\ alive   = [w \in Workers |-> TRUE]
    /\ tries   = 0
    /\ crashes = 0

-----------------------------------------------------------------------------
Submit(r) ==
    /\ req[r].st = "New"
    /\ ctr' = ctr + 1
    /\ req' = [req EXCEPT ![r] = [st |-> "Pending", v |-> ctr + 1]]
    /\ UNCHANGED << cluster, good, lease, wtok, alive, tries, crashes >>

(* Refuse it; or, if a newer one is on its way or through, it comes too    *)
(* late; or queue it, and the one that was queued is superseded in the     *)
(* same write.                                                             *)
Admit(r) ==
    /\ req[r].st = "Pending"
    /\ \/ req' = [req EXCEPT ![r].st = "Rejected"]
       \/ IF \E q \in Requests :
                req[q].v > req[r].v /\ req[q].st \in {"Queued", "Succeeded"} \cup Active
          THEN req' = [req EXCEPT ![r].st = "Superseded"]
          ELSE req' = [q \in Requests |->
                         IF q = r THEN [req[r] EXCEPT !.st = "Queued"]
                         ELSE IF req[q].st = "Queued" THEN [req[q] EXCEPT !.st = "Superseded"]
                         ELSE req[q]]
    /\ UNCHANGED << ctr, cluster, good, lease, wtok, alive, tries, crashes >>

-----------------------------------------------------------------------------
NeedsWork == \E r \in Requests : req[r].st \in {"Queued"} \cup Active

LeaseFree == IF lease.holder = None THEN TRUE ELSE ~alive[lease.holder]

(* The lease is free, or its holder is dead and it ran out. The token only *)
(* grows.                                                                  *)
Acquire(w) ==
    /\ alive[w]
    /\ NeedsWork
    /\ LeaseFree
    /\ lease' = [holder |-> w, token |-> lease.token + 1]
    /\ wtok' = [wtok EXCEPT ![w] = lease.token + 1]
    /\ UNCHANGED << req, ctr, cluster, good, alive, tries, crashes >>

(* Every write carries the token, and an older one is refused. *)
Has(w) ==
    /\ alive[w]
    /\ wtok[w] = lease.token
    /\ lease.holder = w

(* Fail before anything is changed, or begin. *)
Start(w) ==
    /\ Has(w)
    /\ ~\E r \in Requests : req[r].st \in Active
    /\ \E r \in Requests :
          /\ req[r].st = "Queued"
          /\ \/ /\ req' = [req EXCEPT ![r].st = "Failed"]
                /\ UNCHANGED << cluster, tries >>
             \/ /\ req' = [req EXCEPT ![r].st = "Applying"]
                /\ cluster' = [v |-> req[r].v, st |-> "Partial"]
                /\ tries' = 0
    /\ UNCHANGED << ctr, good, lease, wtok, alive, crashes >>

Applied(w) ==
    /\ Has(w)
    /\ \E r \in Requests :
          /\ req[r].st = "Applying"
          /\ req' = [req EXCEPT ![r].st = "Verifying"]
    /\ UNCHANGED << ctr, cluster, good, lease, wtok, alive, tries, crashes >>

Healthy(w) ==
    /\ Has(w)
    /\ \E r \in Requests :
          /\ req[r].st = "Verifying"
          /\ req' = [req EXCEPT ![r].st = "Succeeded"]
          /\ good' = req[r].v
          /\ cluster' = [v |-> req[r].v, st |-> "Idle"]
    /\ UNCHANGED << ctr, lease, wtok, alive, tries, crashes >>

Fail(w) ==
    /\ Has(w)
    /\ \E r \in Requests :
          /\ req[r].st \in {"Applying", "Verifying"}
          /\ req' = [req EXCEPT ![r].st = "RollingBack"]
    /\ UNCHANGED << ctr, cluster, good, lease, wtok, alive, tries, crashes >>

RollbackOk(w) ==
    /\ Has(w)
    /\ \E r \in Requests :
          /\ req[r].st = "RollingBack"
          /\ req' = [req EXCEPT ![r].st = "RolledBack"]
          /\ cluster' = [v |-> good, st |-> "Idle"]
    /\ UNCHANGED << ctr, good, lease, wtok, alive, tries, crashes >>

RollbackBad(w) ==
    /\ Has(w)
    /\ \E r \in Requests :
          /\ req[r].st = "RollingBack"
          /\ IF tries + 1 < MaxRollbackTries
             THEN /\ tries' = tries + 1
                  /\ UNCHANGED << req, cluster >>
             ELSE /\ req' = [req EXCEPT ![r].st = "RollbackFailed"]
                  /\ cluster' = [cluster EXCEPT !.st = "Degraded"]
                  /\ UNCHANGED tries
    /\ UNCHANGED << ctr, good, lease, wtok, alive, crashes >>

Yield(w) ==
    /\ Has(w)
    /\ ~NeedsWork
    /\ lease' = [lease EXCEPT !.holder = None]
    /\ UNCHANGED << req, ctr, cluster, good, wtok, alive, tries, crashes >>

Crash(w) ==
    /\ alive[w]
    /\ crashes < MaxCrash
    /\ crashes' = crashes + 1
    /\ alive' = [alive EXCEPT ![w] = FALSE]
    /\ UNCHANGED << req, ctr, cluster, good, lease, wtok, tries >>

Restart(w) ==
    /\ ~alive[w]
    /\ alive' = [alive EXCEPT ![w] = TRUE]
    /\ wtok' = [wtok EXCEPT ![w] = 0]
    /\ lease' = IF lease.holder = w THEN [lease EXCEPT !.holder = None] ELSE lease
    /\ UNCHANGED << req, ctr, cluster, good, tries, crashes >>

-----------------------------------------------------------------------------
Step(w) ==
    \/ Start(w)
    \/ Applied(w)
    \/ Healthy(w)
    \/ Fail(w)
    \/ RollbackOk(w)
    \/ RollbackBad(w)
    \/ Yield(w)

Next ==
    \/ \E r \in Requests : Submit(r) \/ Admit(r)
    \/ \E w \in Workers :
          \/ Acquire(w)
          \/ Step(w)
          \/ Crash(w)
          \/ Restart(w)

Fair ==
    /\ \A r \in Requests : WF_vars(Submit(r)) /\ WF_vars(Admit(r))
    /\ \A w \in Workers : WF_vars(Acquire(w)) /\ WF_vars(Step(w)) /\ WF_vars(Restart(w))

Spec == Init /\ [][Next]_vars /\ Fair

-----------------------------------------------------------------------------
SingleFlight == Cardinality({r \in Requests : req[r].st \in Active}) <= 1

OneQueued == Cardinality({r \in Requests : req[r].st = "Queued"}) <= 1

PartialHasRequest == cluster.st = "Partial" => \E r \in Requests : req[r].st \in Active

GoodWasSuccess ==
    good # 0 => \E r \in Requests : req[r].v = good /\ req[r].st = "Succeeded"

IdleIsGood == cluster.st = "Idle" => cluster.v = good

TerminalStable == [][\A r \in Requests : req[r].st \in Terminal => req'[r] = req[r]]_vars

NoOutdatedStart ==
    [][\A r \in Requests :
          (req[r].st = "Queued" /\ req'[r].st = "Applying") =>
             \A q \in Requests :
                req[q].st \in {"Queued", "Succeeded"} => req[q].v <= req[r].v]_vars

EveryReqEnds == \A r \in Requests : <>(req[r].st \in Terminal)

EndsSettled == <>[](cluster.st \in {"Idle", "Degraded"})
=============================================================================
