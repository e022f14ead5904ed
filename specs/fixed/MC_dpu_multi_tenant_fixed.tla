--------------------- MODULE MC_dpu_multi_tenant_fixed ---------------------
(* Topologies for dpu_multi_tenant_fixed, and NodeRack/NodeDPUs as simple  *)
(* definitions a configuration may substitute, as in MC_dpu_multi_tenant.  *)
EXTENDS dpu_multi_tenant_fixed

(* One rack, one DPU: every node's only DPU is d1. *)
MCNodeRack1 == [n \in Nodes |-> "r1"]
MCNodeDPUs1 == [n \in Nodes |-> {<<"r1", "d1">>}]

(* One rack, two DPUs: n1 on d1, the rest on d2. *)
MCNodeRack2 == [n \in Nodes |-> "r1"]
MCNodeDPUs2 == [n \in Nodes |-> {<<"r1", IF n = "n1" THEN "d1" ELSE "d2">>}]
=============================================================================
