-------------------------- MODULE PlacementRecord --------------------------
(* The stage of Placement that ships: the permit is a record at the        *)
(* cluster. A crash keeps it, a step takes it back, and a start does not   *)
(* use it up, so that a process may end at any time and start again.       *)
(*                                                                         *)
(* The hub's part is Placement's own. At a cluster less is forbidden: what *)
(* copies data needs no syncer, volumes of epochs that are over are free   *)
(* for the pins of others, whatever the hub took back can be closed, and   *)
(* an epoch that was never filled is given back as it came. The shipped    *)
(* controllers are held against this.                                      *)
(*                                                                         *)
(* For the switches of Placement that guard what a syncer does, this has   *)
(* no other setting than TRUE.                                             *)
EXTENDS Placement

(* A syncer crashes, and with it may go what it was about to permit; what  *)
(* is noted stays. It begins anew with any value that the grant ever had.  *)
Forget(c) ==
    /\ \E h \in hist, keeps \in BOOLEAN :
          /\ view' = [view EXCEPT ![c] = h]
          /\ perm' = IF keeps THEN perm ELSE [perm EXCEPT ![c] = 0]
    /\ UNCHANGED << hub, rel, run, was, off, fil, pop, fin, vol, img, made, nw, must, force >>

Withdraw(c) ==
    /\ perm[c] # 0
    /\ perm' = [perm EXCEPT ![c] = 0]
    /\ UNCHANGED << hub, view, rel, run, was, off, fil, pop, fin, vol, img, made, nw, must,
                    force >>

RecordFillBegin(c) ==
    /\ On(c)
    /\ run[c] = 0
    /\ pop[c] < hub.e
    /\ \/ vol' = [vol EXCEPT ![c] = {}]
       \/ \E h \in hist : vol' = [vol EXCEPT ![c] = h.pin]
    /\ UNCHANGED << hub, view, rel, perm, run, was, off, fil, pop, fin, img, made, nw, must,
                    force >>

(* What is filled has at least what is pinned. *)
RecordFillEnd(c) ==
    /\ On(c)
    /\ MayUse(view[c], c)
    /\ pop[c] < view[c].e
    /\ view[c].pin \subseteq vol[c]
    /\ pop' = [pop EXCEPT ![c] = view[c].e]
    /\ UNCHANGED << hub, view, rel, perm, run, was, off, fil, fin, vol, img, made, nw, must,
                    force >>

RecordStart(c) ==
    /\ On(c)
    /\ run[c] = 0
    /\ perm[c] > rel[c]
    /\ run' = [run EXCEPT ![c] = perm[c]]
    /\ UNCHANGED << hub, view, rel, perm, was, off, fil, pop, fin, vol, img, made, nw, must,
                    force >>

RecordStop(c) ==
    /\ On(c)
    /\ run[c] # 0
    /\ run' = [run EXCEPT ![c] = 0]
    /\ UNCHANGED << hub, view, rel, perm, was, off, fil, pop, fin, vol, img, made, nw, must,
                    force >>

(* An epoch that the hub took back, and that does not run, can be made     *)
(* never to run again.                                                     *)
RecordClose(c) ==
    /\ On(c)
    /\ run[c] = 0
    /\ \E e \in (rel[c] + 1)..(IF hub.o = c /\ hub.ph = "Granted" THEN hub.e - 1 ELSE hub.e) :
          rel' = [rel EXCEPT ![c] = e]
    /\ perm' = [perm EXCEPT ![c] = 0]
    /\ UNCHANGED << hub, view, run, was, off, fil, pop, fin, vol, img, made, nw, must, force >>

RecordFinalSync(c) ==
    /\ On(c)
    /\ run[c] = 0
    /\ pop[c] # 0
    /\ rel[c] >= pop[c]
    /\ fin[c] < pop[c]
    /\ img' = [img EXCEPT ![pop[c]] = vol[c]]
    /\ made' = [made EXCEPT ![pop[c]] = TRUE]
    /\ fin' = [fin EXCEPT ![c] = pop[c]]
    /\ UNCHANGED << hub, view, rel, perm, run, was, off, fil, pop, vol, nw, must, force >>

(* What was never filled was never written to: the pins that it came with  *)
(* are still right.                                                        *)
RecordAck(c) ==
    /\ On(c)
    /\ hub.o = c
    /\ hub.ph = "Revoking"
    /\ rel[c] = hub.e
    /\ pop[c] = hub.e => fin[c] = hub.e
    /\ hub' = [hub EXCEPT !.ph = "Released",
                          !.pin = IF pop[c] = hub.e THEN img[hub.e] ELSE @]
    /\ UNCHANGED << view, rel, perm, run, was, off, fil, pop, fin, vol, img, made, nw, must,
                    force >>

RecordPowerOff(c) ==
    /\ AllowForce
    /\ On(c)
    /\ off' = [off EXCEPT ![c] = TRUE]
    /\ run' = [run EXCEPT ![c] = 0]
    /\ perm' = [perm EXCEPT ![c] = 0]
    /\ UNCHANGED << hub, view, rel, was, fil, pop, fin, vol, img, made, nw, must, force >>

RecordStep ==
    \/ \E d \in Clusters : Grant(d)
    \/ Revoke
    \/ AskForce
    \/ Fence
    \/ \E c \in Clusters :
          \/ Forget(c)
          \/ Withdraw(c)
          \/ RecordFillBegin(c)
          \/ RecordFillEnd(c)
          \/ Permit(c)
          \/ Write(c)
          \/ Replicate(c)
          \/ RecordStart(c)
          \/ RecordStop(c)
          \/ RecordClose(c)
          \/ RecordFinalSync(c)
          \/ RecordAck(c)
          \/ RecordPowerOff(c)
          \/ PowerOn(c)

RecordNext ==
    /\ RecordStep
    /\ hist' = hist \cup {hub'}

RecordSpec == Init /\ [][RecordNext]_vars

(* A closed epoch does not run. *)
ClosedIsStill == \A c \in Clusters : run[c] # 0 => run[c] > rel[c]

(* Between two owners the pins have every write that was not declared lost. *)
PinsHaveEveryWrite ==
    hub.ph \in {"Released", "Fenced", "Unassigned"} => must \subseteq hub.pin
=============================================================================
