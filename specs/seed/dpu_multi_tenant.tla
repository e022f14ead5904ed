------------------------- MODULE dpu_multi_tenant -------------------------
(* Nodes are lent to tenants, whose resources program DPUs: the seed as    *)
(* written, its defects kept.                                              *)
(*                                                                         *)
(* A management plane assigns nodes to tenants. Each tenant's controller   *)
(* watches, buffers, and writes a custom resource (CR) per node into its   *)
(* own etcd. Each DPU reads the CRs of every tenant and adds or removes    *)
(* one node at a time in its hardware. The seed is prose; this module says *)
(* what the prose says. Every part can fail and come back.                 *)
(*                                                                         *)
(* Two things are added, and change nothing when left at their defaults:   *)
(* the topology is a definition that a model may replace (NodeRack,        *)
(* NodeDPUs), and FaultClass leaves faults out ("all" is the seed).        *)
(*                                                                         *)
(* Defects:                                                                *)
(*  1. A programmed node comes back only through a DPU crash or a power    *)
(*     loss: reclaim waits for clean hardware, and nothing else makes it   *)
(*     clean. The removing branch of DPUReconcile never runs.              *)
(*  2. EventualConsistency has the form []A => <>B. That is a statement    *)
(*     about the first state, where A is false, so it holds even without   *)
(*     any fairness.                                                       *)
(*  3. Written as ([]A) ~> B it fails, faults or not: assign, reclaim,     *)
(*     assign to the same tenant, watch, flush, and the deletion queued    *)
(*     at the reclaim removes the new CR.                                  *)
(*  4. The actions quantify inside, so fairness is for "some tenant", not  *)
(*     for each: one tenant, DPU or node may starve.                       *)
(*  5. CRs are deleted with etcd down; reconcile, assign and the re-list   *)
(*     after a crash work with the API server down.                        *)
(*  6. Reclaim looks into all hardware of all racks at once, over no       *)
(*     network.                                                            *)
(*  7. TenantIsolation is per DPU: a node under one tenant on one DPU and  *)
(*     under another tenant on a second DPU passes.                        *)
(*  8. The flush reads the assignment and writes the CR in one step. In    *)
(*     two steps, as over a network, isolation breaks.                     *)
(*  9. The seed was checked by random simulation only. Breadth-first       *)
(*     search finds either of its historic races, put back, in 10 states;  *)
(*     whether random walks find them is a matter of luck.                 *)
EXTENDS Integers, FiniteSets

CONSTANTS
    Nodes,       \* the nodes that are lent
    Racks,       \* the racks
    DPUs,        \* names of the DPUs, the same in every rack
    Tenants,     \* the tenants
    FaultClass   \* "none", "core" (the faults that touch data) or "all" (the seed)

ASSUME FaultClass \in {"none", "core", "all"}

(* The topology: the rack of each node, and the DPUs that serve it as      *)
(* <<rack, dpu>> pairs. A configuration replaces them by substitution.     *)
NodeRack == [n \in Nodes |-> "r1"]
NodeDPUs == [n \in Nodes |-> IF n = "n3" THEN {<<"r1", "d2">>} ELSE {<<"r1", "d1">>}]

VARIABLES
    mgmt_nodes,            \* nodes that nobody has
    mgmt_controller_up,    \* the management controller runs
    mgmt_tenant_network,   \* [Tenants -> BOOLEAN] management reaches the tenant
    tenant_nodes,          \* [Tenants -> SUBSET Nodes] nodes the tenant has
    tenant_events,         \* [Tenants -> SUBSET Nodes] assignments not yet watched
    tenant_buffer,         \* [Tenants -> SUBSET Nodes] watched, not yet written; in memory
    tenant_controller_up,  \* [Tenants -> BOOLEAN]
    tenant_apiserver_up,   \* [Tenants -> BOOLEAN]
    tenant_etcd_up,        \* [Tenants -> BOOLEAN]
    tenant_etcd_quorum,    \* [Tenants -> BOOLEAN] etcd takes writes
    tenant_dpu_network,    \* [Tenants -> BOOLEAN] DPUs reach the tenant's API
    dpu_crs,               \* [Racks, Tenants -> SUBSET Nodes] the CRs
    dpu_crs_delete_queue,  \* [Racks, Tenants -> SUBSET Nodes] deletions asked for, not done
    dpu_hw,                \* [Racks, Tenants, DPUs -> SUBSET Nodes] what is programmed
    dpu_online,            \* [Racks, DPUs -> BOOLEAN]
    rack_power             \* [Racks -> BOOLEAN]

(* Groups for the frame conditions. *)
mgmt   == << mgmt_controller_up, mgmt_tenant_network >>
plane  == << tenant_apiserver_up, tenant_etcd_up, tenant_etcd_quorum, tenant_dpu_network >>
assign == << mgmt_nodes, tenant_nodes >>
device == << dpu_hw, dpu_online, rack_power >>
queues == << assign, tenant_events, dpu_crs, dpu_crs_delete_queue >>
data   == << queues, tenant_buffer, tenant_controller_up >>

vars ==
    << mgmt_nodes, mgmt_controller_up, mgmt_tenant_network,
       tenant_nodes, tenant_events, tenant_buffer, tenant_controller_up,
       tenant_apiserver_up, tenant_etcd_up, tenant_etcd_quorum, tenant_dpu_network,
       dpu_crs, dpu_crs_delete_queue, dpu_hw, dpu_online, rack_power >>

Init ==
    /\ mgmt_nodes           = Nodes
    /\ mgmt_controller_up   = TRUE
    /\ mgmt_tenant_network  = [t \in Tenants |-> TRUE]
    /\ tenant_nodes         = [t \in Tenants |-> {}]
    /\ tenant_events        = [t \in Tenants |-> {}]
    /\ tenant_buffer        = [t \in Tenants |-> {}]
    /\ tenant_controller_up = [t \in Tenants |-> TRUE]
    /\ tenant_apiserver_up  = [t \in Tenants |-> TRUE]
    /\ tenant_etcd_up       = [t \in Tenants |-> TRUE]
    /\ tenant_etcd_quorum   = [t \in Tenants |-> TRUE]
    /\ tenant_dpu_network   = [t \in Tenants |-> TRUE]
    /\ dpu_crs              = [r \in Racks, t \in Tenants |-> {}]
    /\ dpu_crs_delete_queue = [r \in Racks, t \in Tenants |-> {}]
    /\ dpu_hw               = [r \in Racks, t \in Tenants, d \in DPUs |-> {}]
    /\ dpu_online           = [r \in Racks, d \in DPUs |-> TRUE]
    /\ rack_power           = [r \in Racks |-> TRUE]

---------------------------------------------------------------------------
(* Normal operation. *)

MgmtAssign ==
    \E n \in mgmt_nodes, t \in Tenants :
       /\ mgmt_controller_up
       /\ mgmt_tenant_network[t]   \* defect 5: not the tenant's API server
       /\ mgmt_nodes' = mgmt_nodes \ {n}
       /\ tenant_nodes' = [tenant_nodes EXCEPT ![t] = @ \cup {n}]
       /\ tenant_events' = [tenant_events EXCEPT ![t] = @ \cup {n}]
       /\ UNCHANGED << mgmt, tenant_buffer, tenant_controller_up, plane,
                       dpu_crs, dpu_crs_delete_queue, device >>

(* The repair of the first historic race: a node returns to the pool only  *)
(* when no hardware has it. It is also defect 1, and defect 6.             *)
HardwareIsClean(n) == \A r \in Racks, u \in Tenants, d \in DPUs : n \notin dpu_hw[r, u, d]

(* Every rack gets the deletion, also those that never had the CR.         *)
MgmtReclaim ==
    \E t \in Tenants : \E n \in tenant_nodes[t] :
       /\ mgmt_controller_up
       /\ mgmt_tenant_network[t]
       /\ HardwareIsClean(n)
       /\ mgmt_nodes' = mgmt_nodes \cup {n}
       /\ tenant_nodes' = [tenant_nodes EXCEPT ![t] = @ \ {n}]
       /\ tenant_events' = [tenant_events EXCEPT ![t] = @ \ {n}]
       /\ dpu_crs_delete_queue' =
             [r \in Racks, u \in Tenants |->
                IF u = t THEN dpu_crs_delete_queue[r, u] \cup {n}
                         ELSE dpu_crs_delete_queue[r, u]]
       /\ UNCHANGED << mgmt, tenant_buffer, tenant_controller_up, plane, dpu_crs, device >>

TenantWatch ==
    \E t \in Tenants : \E n \in tenant_events[t] :
       /\ tenant_controller_up[t]
       /\ tenant_apiserver_up[t]
       /\ tenant_buffer' = [tenant_buffer EXCEPT ![t] = @ \cup {n}]
       /\ tenant_events' = [tenant_events EXCEPT ![t] = @ \ {n}]
       /\ UNCHANGED << mgmt, assign, tenant_controller_up, plane,
                       dpu_crs, dpu_crs_delete_queue, device >>

CanWrite(t) ==
    /\ tenant_controller_up[t]
    /\ tenant_apiserver_up[t]
    /\ tenant_etcd_up[t]
    /\ tenant_etcd_quorum[t]

(* Only what is still assigned is written, each node to its own rack.      *)
(* Defect 8: the look at tenant_nodes and the write are one step.          *)
TenantFlush ==
    \E t \in Tenants :
       /\ CanWrite(t)
       /\ tenant_buffer[t] # {}
       /\ dpu_crs' =
             [r \in Racks, u \in Tenants |->
                IF u = t
                THEN dpu_crs[r, u]
                        \cup {n \in tenant_buffer[t] \cap tenant_nodes[t] : NodeRack[n] = r}
                ELSE dpu_crs[r, u]]
       /\ tenant_buffer' = [tenant_buffer EXCEPT ![t] = {}]
       /\ UNCHANGED << mgmt, assign, tenant_events, tenant_controller_up, plane,
                       dpu_crs_delete_queue, device >>

(* The repair of the second historic race: a CR whose deletion is queued   *)
(* is as good as gone.                                                     *)
CRsInForce(r, t) == dpu_crs[r, t] \ dpu_crs_delete_queue[r, t]

(* One node at a time, removals first. Which one is left to CHOOSE: TLC    *)
(* takes the least name, so equal nodes are not interchangeable to it.     *)
DPUReconcile ==
    \E r \in Racks, d \in DPUs, t \in Tenants :
       /\ rack_power[r]
       /\ dpu_online[r, d]
       /\ tenant_dpu_network[t]   \* defect 5: not the tenant's API server
       /\ LET wanted == {n \in CRsInForce(r, t) : <<r, d>> \in NodeDPUs[n]}
              stale  == dpu_hw[r, t, d] \ wanted
              absent == wanted \ dpu_hw[r, t, d]
          IN /\ stale # {} \/ absent # {}
             /\ dpu_hw' =
                   [dpu_hw EXCEPT ![r, t, d] =
                      IF stale # {} THEN @ \ {CHOOSE n \in stale : TRUE}   \* defect 1
                                    ELSE @ \cup {CHOOSE n \in absent : TRUE}]
       /\ UNCHANGED << mgmt, queues, tenant_buffer, tenant_controller_up, plane,
                       dpu_online, rack_power >>

TenantCleanup ==
    \E t \in Tenants :
       /\ CanWrite(t)
       /\ \E r \in Racks : dpu_crs[r, t] \ tenant_nodes[t] # {}
       /\ dpu_crs' =
             [r \in Racks, u \in Tenants |->
                IF u = t THEN dpu_crs[r, u] \cap tenant_nodes[t] ELSE dpu_crs[r, u]]
       /\ UNCHANGED << mgmt, assign, tenant_events, tenant_buffer, tenant_controller_up, plane,
                       dpu_crs_delete_queue, device >>

(* Defect 3: the queue holds names, so it also hits a CR written later.    *)
(* Defect 5: etcd need not be up.                                          *)
ProcessCRDeletion ==
    \E r \in Racks, t \in Tenants :
       /\ dpu_crs_delete_queue[r, t] # {}
       /\ dpu_crs' = [dpu_crs EXCEPT ![r, t] = @ \ dpu_crs_delete_queue[r, t]]
       /\ dpu_crs_delete_queue' = [dpu_crs_delete_queue EXCEPT ![r, t] = {}]
       /\ UNCHANGED << mgmt, assign, tenant_events, tenant_buffer, tenant_controller_up, plane,
                       device >>

---------------------------------------------------------------------------
(* Faults that touch data, and the way back. *)

TenantCrash ==
    \E t \in Tenants :
       /\ tenant_controller_up[t]
       /\ tenant_controller_up' = [tenant_controller_up EXCEPT ![t] = FALSE]
       /\ tenant_buffer' = [tenant_buffer EXCEPT ![t] = {}]
       /\ UNCHANGED << mgmt, queues, plane, device >>

(* Everything is listed again. Defect 5: the API server may be down.       *)
TenantRecover ==
    \E t \in Tenants :
       /\ ~tenant_controller_up[t]
       /\ tenant_controller_up' = [tenant_controller_up EXCEPT ![t] = TRUE]
       /\ tenant_buffer' = [tenant_buffer EXCEPT ![t] = tenant_nodes[t]]
       /\ UNCHANGED << mgmt, queues, plane, device >>

PowerOff ==
    \E r \in Racks :
       /\ rack_power[r]
       /\ rack_power' = [rack_power EXCEPT ![r] = FALSE]
       /\ dpu_online' = [s \in Racks, d \in DPUs |-> IF s = r THEN FALSE ELSE dpu_online[s, d]]
       /\ dpu_hw' = [s \in Racks, t \in Tenants, d \in DPUs |->
                       IF s = r THEN {} ELSE dpu_hw[s, t, d]]
       /\ UNCHANGED << mgmt, data, plane >>

PowerOn ==
    \E r \in Racks :
       /\ ~rack_power[r]
       /\ rack_power' = [rack_power EXCEPT ![r] = TRUE]
       /\ dpu_online' = [s \in Racks, d \in DPUs |-> IF s = r THEN TRUE ELSE dpu_online[s, d]]
       /\ UNCHANGED << mgmt, data, plane, dpu_hw >>

DPUCrash ==
    \E r \in Racks, d \in DPUs :
       /\ rack_power[r]
       /\ dpu_online[r, d]
       /\ dpu_online' = [dpu_online EXCEPT ![r, d] = FALSE]
       /\ dpu_hw' = [s \in Racks, t \in Tenants, e \in DPUs |->
                       IF s = r /\ e = d THEN {} ELSE dpu_hw[s, t, e]]
       /\ UNCHANGED << mgmt, data, plane, rack_power >>

DPURecover ==
    \E r \in Racks, d \in DPUs :
       /\ rack_power[r]
       /\ ~dpu_online[r, d]
       /\ dpu_online' = [dpu_online EXCEPT ![r, d] = TRUE]
       /\ UNCHANGED << mgmt, data, plane, dpu_hw, rack_power >>

---------------------------------------------------------------------------
(* Faults that set one flag. Each flag may change in every state and with  *)
(* no other variable, so the reachable states are a product with them.     *)

MgmtCrash ==
    /\ mgmt_controller_up
    /\ mgmt_controller_up' = FALSE
    /\ UNCHANGED << mgmt_tenant_network, data, plane, device >>

MgmtRecover ==
    /\ ~mgmt_controller_up
    /\ mgmt_controller_up' = TRUE
    /\ UNCHANGED << mgmt_tenant_network, data, plane, device >>

SetMgmtNetwork(up) ==
    \E t \in Tenants :
       /\ mgmt_tenant_network[t] # up
       /\ mgmt_tenant_network' = [mgmt_tenant_network EXCEPT ![t] = up]
       /\ UNCHANGED << mgmt_controller_up, data, plane, device >>

MgmtTenantPartition == SetMgmtNetwork(FALSE)
MgmtTenantHeal      == SetMgmtNetwork(TRUE)

SetApiServer(up) ==
    \E t \in Tenants :
       /\ tenant_apiserver_up[t] # up
       /\ tenant_apiserver_up' = [tenant_apiserver_up EXCEPT ![t] = up]
       /\ UNCHANGED << mgmt, data, tenant_etcd_up, tenant_etcd_quorum, tenant_dpu_network,
                       device >>

ApiServerDown == SetApiServer(FALSE)
ApiServerUp   == SetApiServer(TRUE)

(* Quorum goes and comes with etcd. *)
SetEtcd(up) ==
    \E t \in Tenants :
       /\ tenant_etcd_up[t] # up
       /\ tenant_etcd_up' = [tenant_etcd_up EXCEPT ![t] = up]
       /\ tenant_etcd_quorum' = [tenant_etcd_quorum EXCEPT ![t] = up]
       /\ UNCHANGED << mgmt, data, tenant_apiserver_up, tenant_dpu_network, device >>

EtcdDown == SetEtcd(FALSE)
EtcdUp   == SetEtcd(TRUE)

SetQuorum(up) ==
    \E t \in Tenants :
       /\ tenant_etcd_up[t]
       /\ tenant_etcd_quorum[t] # up
       /\ tenant_etcd_quorum' = [tenant_etcd_quorum EXCEPT ![t] = up]
       /\ UNCHANGED << mgmt, data, tenant_apiserver_up, tenant_etcd_up, tenant_dpu_network,
                       device >>

EtcdLoseQuorum   == SetQuorum(FALSE)
EtcdRegainQuorum == SetQuorum(TRUE)

SetDpuNetwork(up) ==
    \E t \in Tenants :
       /\ tenant_dpu_network[t] # up
       /\ tenant_dpu_network' = [tenant_dpu_network EXCEPT ![t] = up]
       /\ UNCHANGED << mgmt, data, tenant_apiserver_up, tenant_etcd_up, tenant_etcd_quorum,
                       device >>

TenantDPUPartition == SetDpuNetwork(FALSE)
TenantDPUHeal      == SetDpuNetwork(TRUE)

---------------------------------------------------------------------------
Normal ==
    \/ MgmtAssign
    \/ MgmtReclaim
    \/ TenantWatch
    \/ TenantFlush
    \/ DPUReconcile
    \/ TenantCleanup
    \/ ProcessCRDeletion

CoreFaults ==
    \/ TenantCrash
    \/ TenantRecover
    \/ PowerOff
    \/ PowerOn
    \/ DPUCrash
    \/ DPURecover

FlagFaults ==
    \/ MgmtCrash
    \/ MgmtRecover
    \/ ApiServerDown
    \/ ApiServerUp
    \/ EtcdDown
    \/ EtcdUp
    \/ EtcdLoseQuorum
    \/ EtcdRegainQuorum
    \/ MgmtTenantPartition
    \/ MgmtTenantHeal
    \/ TenantDPUPartition
    \/ TenantDPUHeal

Faults ==
    \/ FaultClass \in {"core", "all"} /\ CoreFaults
    \/ FaultClass = "all" /\ FlagFaults

Next == Normal \/ Faults

(* Defect 4. A way back that is left out of Next is never enabled either.  *)
Fairness ==
    /\ WF_vars(TenantWatch)
    /\ WF_vars(TenantFlush)
    /\ WF_vars(DPUReconcile)
    /\ WF_vars(TenantCleanup)
    /\ WF_vars(ProcessCRDeletion)
    /\ SF_vars(TenantRecover)
    /\ SF_vars(MgmtRecover)
    /\ SF_vars(ApiServerUp)
    /\ SF_vars(EtcdUp)
    /\ SF_vars(EtcdRegainQuorum)
    /\ SF_vars(PowerOn)
    /\ SF_vars(DPURecover)
    /\ SF_vars(MgmtTenantHeal)
    /\ SF_vars(TenantDPUHeal)

Spec == Init /\ [][Next]_vars /\ Fairness

---------------------------------------------------------------------------
(* Defect 7: d is bound outside the count. *)
TenantIsolation ==
    \A n \in Nodes, r \in Racks, d \in DPUs :
       Cardinality({t \in Tenants : n \in dpu_hw[r, t, d]}) <= 1

NodeSingleAssignment ==
    \A n \in Nodes : Cardinality({t \in Tenants : n \in tenant_nodes[t]}) <= 1

RackAffinity ==
    \A n \in Nodes, r \in Racks, t \in Tenants, d \in DPUs :
       n \in dpu_hw[r, t, d] => NodeRack[n] = r

DPUAffinity ==
    \A n \in Nodes, r \in Racks, t \in Tenants, d \in DPUs :
       n \in dpu_hw[r, t, d] => <<r, d>> \in NodeDPUs[n]

(* About the topology, not about any state. *)
ConfigurationConsistency ==
    \A n \in Nodes : \A p \in NodeDPUs[n] :
       /\ p[1] = NodeRack[n]
       /\ p[1] \in Racks
       /\ p[2] \in DPUs

Programmed(n, t) ==
    \A r \in Racks, d \in DPUs : <<r, d>> \in NodeDPUs[n] => n \in dpu_hw[r, t, d]

(* Defect 2. *)
EventualConsistency ==
    \A n \in Nodes, t \in Tenants : [](n \in tenant_nodes[t]) => <>Programmed(n, t)
===========================================================================
