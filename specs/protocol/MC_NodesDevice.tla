--------------------------- MODULE MC_NodesDevice ---------------------------
(* A mutant that no constant of NodesDevice can say: the floor of a port   *)
(* rises to the epoch that is given, before that is revoked.               *)
EXTENDS NodesDevice

RaiseToEpoch(d) ==
    LET bad == {x \in hw[d] : x[1] # uid \/ x[3] <= ep} IN
    /\ power[d] /\ net[d] /\ node[d] = uid
    /\ dfloor[d] < ep \/ bad # {}
    /\ hw' = [hw EXCEPT ![d] = @ \ bad]
    /\ dfloor' = [dfloor EXCEPT ![d] = Max(@, ep)]
    /\ UNCHANGED << hub, node, flight, passed, power, links, f >>
=============================================================================
