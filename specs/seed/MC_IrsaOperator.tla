-------------------------- MODULE MC_IrsaOperator --------------------------
(* What the seed's liveness property was meant to say, to see it fail.     *)
EXTENDS IrsaOperator

(* Spec without the assumption []TypeOk, which checks nothing and costs.   *)
FairSpec == Init /\ [][Next]_vars /\ Fairness

(* In the end everything is there, and stays.                              *)
EventuallyDone == <>[](ENABLED Termination)

(* Not in the seed: the order of things at the end, bound as it was meant. *)
LastActionAsMeant == ENABLED Termination ~> (ENABLED Termination /\ ~ENABLED Actions)
=============================================================================
