----------------------- MODULE MC_dpu_multi_tenant -----------------------
(* Other topologies for dpu_multi_tenant, and its defects made visible.   *)
(* A configuration picks from here by substitution, for example           *)
(*    NodeDPUs <- MCEveryDPU                                              *)
EXTENDS dpu_multi_tenant

(* Every node is served by every DPU of its rack. *)
MCEveryDPU == [n \in Nodes |-> {NodeRack[n]} \X DPUs]

(* n1 on d1, every other node on d2. *)
MCSplitDPUs == [n \in Nodes |-> {<<NodeRack[n], IF n = "n1" THEN "d1" ELSE "d2">>}]

(* n1 in r1, every other node in r2; one DPU each. *)
MCTwoRacks     == [n \in Nodes |-> IF n = "n1" THEN "r1" ELSE "r2"]
MCTwoRacksDPUs == [n \in Nodes |-> {<<IF n = "n1" THEN "r1" ELSE "r2", "d1">>}]

(* The historic races: each substitution takes one repair away. *)
MCNoHardwareCheck(n) == TRUE          \* for HardwareIsClean
MCEveryCR(r, t)      == dpu_crs[r, t] \* for CRsInForce

(* Defect 2 as it was meant, which is false (defect 3). *)
ConsistencyAsMeant ==
    \A n \in Nodes, t \in Tenants : [](n \in tenant_nodes[t]) ~> Programmed(n, t)

(* Defect 2: without any fairness the seed's property holds all the same. *)
UnfairSpec == Init /\ [][Next]_vars

(* Defect 7 as it was meant: over all DPUs at once. *)
IsolationAcrossDPUs ==
    \A n \in Nodes :
       Cardinality({t \in Tenants : \E r \in Racks, d \in DPUs : n \in dpu_hw[r, t, d]}) <= 1

(* Defect 1: hardware is never stale, so the removing branch never runs. *)
NeverStale ==
    \A r \in Racks, d \in DPUs, t \in Tenants :
       dpu_hw[r, t, d] \subseteq {n \in CRsInForce(r, t) : <<r, d>> \in NodeDPUs[n]}

(* What CHOOSE picks: if this holds, n2 is never added before n1. *)
FirstNameFirst ==
    [][\A r \in Racks, d \in DPUs, t \in Tenants :
          LET wanted == {n \in CRsInForce(r, t) : <<r, d>> \in NodeDPUs[n]}
              absent == wanted \ dpu_hw[r, t, d]
          IN {"n1", "n2"} \subseteq absent => ~("n2" \in dpu_hw'[r, t, d])]_vars
==========================================================================
