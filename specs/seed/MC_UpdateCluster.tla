------------------------- MODULE MC_UpdateCluster -------------------------
(* What the seed should have asked, to see its defects fail a check.       *)
EXTENDS UpdateCluster

(* A taken lock has a worker that will give it back (defect 1). *)
LockHasHolder == lock => \E w \in _Workers : workers[w].st # "waiting"

(* A version that was applied to the end is not called rejected (defect 2). *)
AppliedIsNotRejected ==
    \A r \in _Requests : requests[r].st = "rejected" => requests[r].v # lastVOK

(* NoConcurrentUpdate with the set it meant (defect 6). *)
OneWorkerWorks == Cardinality({w \in _Workers : workers[w].st = "working"}) < 2
=============================================================================
