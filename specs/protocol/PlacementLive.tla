--------------------------- MODULE PlacementLive ---------------------------
(* Liveness of Placement: with finitely many faults, moves come to an end. *)
EXTENDS Placement

CONSTANT MaxFaults   \* how many faults happen

VARIABLE faults      \* how many have happened

lvars == << vars, faults >>

LInit == Init /\ faults = 0

(* Coming back after a power loss is not a fault, so it is not counted.    *)
Calm ==
    \/ \E d \in Clusters : Grant(d)
    \/ Revoke
    \/ Fence
    \/ \E c \in Clusters :
          \/ Observe(c)
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
          \/ PowerOn(c)

Fault ==
    \/ AskForce
    \/ \E c \in Clusters :
          \/ Relist(c)
          \/ Crash(c)
          \/ PowerOff(c)

Remember == hist' = IF TimeTravel THEN hist \cup {hub'} ELSE hist

(* None of the faults writes the grant, so there is nothing to remember.   *)
LNext ==
    \/ Calm /\ UNCHANGED faults /\ Remember
    \/ Fault /\ faults < MaxFaults /\ faults' = faults + 1 /\ hist' = hist

(* One action of Placement, as a step of LNext. *)
H(A) == A /\ UNCHANGED faults /\ Remember

(* Fair are the controllers, per cluster. The user (Grant, Revoke), the    *)
(* workload (Write), the background copy (Replicate) and the faults are    *)
(* not: liveness may not lean on them.                                     *)
LSpec ==
    /\ LInit
    /\ [][LNext]_lvars
    /\ WF_lvars(H(Fence))
    /\ \A c \in Clusters :
          /\ WF_lvars(H(Observe(c)))
          /\ WF_lvars(H(FillBegin(c)))
          /\ WF_lvars(H(FillEnd(c)))
          /\ WF_lvars(H(Permit(c)))
          /\ WF_lvars(H(Start(c)))
          /\ WF_lvars(H(Stop(c)))
          /\ WF_lvars(H(Close(c)))
          /\ WF_lvars(H(FinalSync(c)))
          /\ WF_lvars(H(Ack(c)))
          /\ WF_lvars(H(PowerOn(c)))

-----------------------------------------------------------------------------
RevokeEnds == (hub.ph = "Revoking") ~> (hub.ph # "Revoking")

GrantRuns ==
    \A c \in Clusters :
       (hub.o = c /\ hub.ph = "Granted")
          ~> (run[c] = hub.e \/ hub.ph # "Granted" \/ hub.o # c)
=============================================================================
