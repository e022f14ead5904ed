---------------------- MODULE dpu_multi_tenant_fixed ----------------------
(* dpu_multi_tenant repaired: a reclaimed node returns to the pool only    *)
(* after each of its DPUs has let go of it.                                *)
(*                                                                         *)
(*  1. MgmtReclaim marks the node in the tenant's own record, as if by a   *)
(*     deletion timestamp.                                                 *)
(*  2. TenantCleanup marks its CR for deletion.                            *)
(*  3. DPUReconcile deprograms the node; DPUFinalize takes the DPU's       *)
(*     finalizer off the CR, and with the last one the CR is gone.         *)
(*  4. MgmtReturn puts the node back into the pool only once the tenant    *)
(*     has no CR of it left: management never looks into dpu_hw itself.    *)
(*                                                                         *)
(* Every access to a tenant's data needs that tenant's API server and      *)
(* etcd, and a write needs quorum too. Fairness is per tenant, DPU and     *)
(* node, unlike the seed's. MaxF bounds the number of faults of all kinds  *)
(* together; 99 means any number, which is for safety only, since liveness *)
(* needs faults to stop.                                                   *)
EXTENDS Integers, FiniteSets

CONSTANTS
    Nodes, Racks, DPUs, Tenants,  \* as in the seed
    NodeRack, NodeDPUs,           \* the topology; a function, so set by a model
    MaxF,                         \* 99: no bound on faults
    FaultSet,                     \* which kinds of fault may happen
    EarlyReturn                   \* TRUE: a mutant, returns a node before its CR is gone

VARIABLES
    mgmt_nodes, mgmt_controller_up, mgmt_tenant_network,
    tenant_nodes,      \* [Tenants -> SUBSET Nodes] nodes the tenant has
    tenant_deleting,   \* [Tenants -> SUBSET Nodes] of those, being reclaimed
    tenant_events, tenant_buffer, tenant_controller_up, tenant_apiserver_up,
    tenant_etcd_up, tenant_etcd_quorum, tenant_dpu_network,
    dpu_crs,           \* [Racks, Tenants -> SUBSET Nodes] the CRs
    dpu_crs_deleting,  \* [Racks, Tenants -> SUBSET Nodes] of those, marked for deletion
    dpu_fin,           \* [Racks, Tenants -> set of <<node, dpu>>] finalizers still on a CR
    dpu_hw, dpu_online, rack_power,
    faults             \* how many so far

Vars ==
    << mgmt_nodes, mgmt_controller_up, mgmt_tenant_network, tenant_nodes, tenant_deleting,
       tenant_events, tenant_buffer, tenant_controller_up, tenant_apiserver_up, tenant_etcd_up,
       tenant_etcd_quorum, tenant_dpu_network, dpu_crs, dpu_crs_deleting, dpu_fin, dpu_hw,
       dpu_online, rack_power, faults >>

RT == Racks \X Tenants

Init ==
    /\ mgmt_nodes = Nodes
    /\ mgmt_controller_up = TRUE
    /\ mgmt_tenant_network = [t \in Tenants |-> TRUE]
    /\ tenant_nodes = [t \in Tenants |-> {}]
    /\ tenant_deleting = [t \in Tenants |-> {}]
    /\ tenant_events = [t \in Tenants |-> {}]
    /\ tenant_buffer = [t \in Tenants |-> {}]
    /\ tenant_controller_up = [t \in Tenants |-> TRUE]
    /\ tenant_apiserver_up = [t \in Tenants |-> TRUE]
    /\ tenant_etcd_up = [t \in Tenants |-> TRUE]
    /\ tenant_etcd_quorum = [t \in Tenants |-> TRUE]
    /\ tenant_dpu_network = [t \in Tenants |-> TRUE]
    /\ dpu_crs = [x \in RT |-> {}]
    /\ dpu_crs_deleting = [x \in RT |-> {}]
    /\ dpu_fin = [x \in RT |-> {}]
    /\ dpu_hw = [r \in Racks, t \in Tenants, d \in DPUs |-> {}]
    /\ dpu_online = [r \in Racks, d \in DPUs |-> TRUE]
    /\ rack_power = [r \in Racks |-> TRUE]
    /\ faults = 0

ApiRead(t)  == tenant_apiserver_up[t] /\ tenant_etcd_up[t]
ApiWrite(t) == ApiRead(t) /\ tenant_etcd_quorum[t]
MgmtReach(t) == mgmt_controller_up /\ mgmt_tenant_network[t]
DPUReach(r, d, t) == rack_power[r] /\ dpu_online[r, d] /\ tenant_dpu_network[t]

-----------------------------------------------------------------------------
MgmtAssign(t) ==
    \E n \in mgmt_nodes :
       /\ MgmtReach(t)
       /\ ApiWrite(t)
       /\ mgmt_nodes' = mgmt_nodes \ {n}
       /\ tenant_nodes' = [tenant_nodes EXCEPT ![t] = @ \cup {n}]
       /\ tenant_events' = [tenant_events EXCEPT ![t] = @ \cup {n}]
       /\ UNCHANGED << mgmt_controller_up, mgmt_tenant_network, tenant_deleting, tenant_buffer,
                       tenant_controller_up, tenant_apiserver_up, tenant_etcd_up,
                       tenant_etcd_quorum, tenant_dpu_network, dpu_crs, dpu_crs_deleting,
                       dpu_fin, dpu_hw, dpu_online, rack_power, faults >>

MgmtReclaim(t) ==
    \E n \in tenant_nodes[t] \ tenant_deleting[t] :
       /\ MgmtReach(t)
       /\ ApiWrite(t)
       /\ tenant_deleting' = [tenant_deleting EXCEPT ![t] = @ \cup {n}]
       /\ UNCHANGED << mgmt_nodes, mgmt_controller_up, mgmt_tenant_network, tenant_nodes,
                       tenant_events, tenant_buffer, tenant_controller_up, tenant_apiserver_up,
                       tenant_etcd_up, tenant_etcd_quorum, tenant_dpu_network, dpu_crs,
                       dpu_crs_deleting, dpu_fin, dpu_hw, dpu_online, rack_power, faults >>

(* While a CR of the node is left, a DPU may still have it programmed. The *)
(* mutant EarlyReturn does not wait for that.                              *)
MgmtReturn(t, n) ==
    /\ n \in tenant_deleting[t]
    /\ MgmtReach(t)
    /\ ApiWrite(t)
    /\ EarlyReturn \/ \A r \in Racks : n \notin dpu_crs[r, t]
    /\ mgmt_nodes' = mgmt_nodes \cup {n}
    /\ tenant_nodes' = [tenant_nodes EXCEPT ![t] = @ \ {n}]
    /\ tenant_deleting' = [tenant_deleting EXCEPT ![t] = @ \ {n}]
    /\ tenant_events' = [tenant_events EXCEPT ![t] = @ \ {n}]
    /\ UNCHANGED << mgmt_controller_up, mgmt_tenant_network, tenant_buffer,
                    tenant_controller_up, tenant_apiserver_up, tenant_etcd_up,
                    tenant_etcd_quorum, tenant_dpu_network, dpu_crs, dpu_crs_deleting, dpu_fin,
                    dpu_hw, dpu_online, rack_power, faults >>

TenantWatch(t, n) ==
    /\ n \in tenant_events[t]
    /\ tenant_controller_up[t]
    /\ ApiRead(t)
    /\ tenant_buffer' = [tenant_buffer EXCEPT ![t] = @ \cup {n}]
    /\ tenant_events' = [tenant_events EXCEPT ![t] = @ \ {n}]
    /\ UNCHANGED << mgmt_nodes, mgmt_controller_up, mgmt_tenant_network, tenant_nodes,
                    tenant_deleting, tenant_controller_up, tenant_apiserver_up, tenant_etcd_up,
                    tenant_etcd_quorum, tenant_dpu_network, dpu_crs, dpu_crs_deleting, dpu_fin,
                    dpu_hw, dpu_online, rack_power, faults >>

(* What is still assigned and not going becomes a CR, each in its rack,    *)
(* with one finalizer per DPU it is meant for.                             *)
TenantFlush(t) ==
    /\ tenant_controller_up[t]
    /\ ApiWrite(t)
    /\ tenant_buffer[t] # {}
    /\ LET ok == (tenant_buffer[t] \cap tenant_nodes[t]) \ tenant_deleting[t]
           new(r) == {n \in ok : NodeRack[n] = r} \ dpu_crs[r, t]
       IN /\ dpu_crs' = [x \in RT |-> IF x[2] = t THEN dpu_crs[x] \cup new(x[1]) ELSE dpu_crs[x]]
          /\ dpu_fin' = [x \in RT |->
                           IF x[2] = t
                           THEN dpu_fin[x] \cup {<<n, d>> \in new(x[1]) \X DPUs :
                                                    <<x[1], d>> \in NodeDPUs[n]}
                           ELSE dpu_fin[x]]
    /\ tenant_buffer' = [tenant_buffer EXCEPT ![t] = {}]
    /\ UNCHANGED << mgmt_nodes, mgmt_controller_up, mgmt_tenant_network, tenant_nodes,
                    tenant_deleting, tenant_events, tenant_controller_up, tenant_apiserver_up,
                    tenant_etcd_up, tenant_etcd_quorum, tenant_dpu_network, dpu_crs_deleting,
                    dpu_hw, dpu_online, rack_power, faults >>

(* Marks for deletion every CR of a node being reclaimed, in this rack.    *)
TenantCleanup(r, t) ==
    /\ tenant_controller_up[t]
    /\ ApiWrite(t)
    /\ LET stale == (dpu_crs[r, t] \cap tenant_deleting[t]) \ dpu_crs_deleting[r, t]
       IN /\ stale # {}
          /\ dpu_crs_deleting' = [dpu_crs_deleting EXCEPT ![r, t] = @ \cup stale]
    /\ UNCHANGED << mgmt_nodes, mgmt_controller_up, mgmt_tenant_network, tenant_nodes,
                    tenant_deleting, tenant_events, tenant_buffer, tenant_controller_up,
                    tenant_apiserver_up, tenant_etcd_up, tenant_etcd_quorum, tenant_dpu_network,
                    dpu_crs, dpu_fin, dpu_hw, dpu_online, rack_power, faults >>

(* One node at a time, and any of them: the seed leaves the choice to      *)
(* CHOOSE, here n is a parameter and has a fairness condition of its own.  *)
DPUReconcile(r, d, t, n) ==
    /\ DPUReach(r, d, t)
    /\ ApiRead(t)
    /\ LET target == {m \in dpu_crs[r, t] \ dpu_crs_deleting[r, t] : <<r, d>> \in NodeDPUs[m]}
           hw == dpu_hw[r, t, d]
       IN \/ /\ n \in hw \ target
             /\ dpu_hw' = [dpu_hw EXCEPT ![r, t, d] = @ \ {n}]
          \/ /\ n \in target \ hw
             /\ dpu_hw' = [dpu_hw EXCEPT ![r, t, d] = @ \cup {n}]
    /\ UNCHANGED << mgmt_nodes, mgmt_controller_up, mgmt_tenant_network, tenant_nodes,
                    tenant_deleting, tenant_events, tenant_buffer, tenant_controller_up,
                    tenant_apiserver_up, tenant_etcd_up, tenant_etcd_quorum, tenant_dpu_network,
                    dpu_crs, dpu_crs_deleting, dpu_fin, dpu_online, rack_power, faults >>

(* Once deprogrammed, this DPU's finalizer comes off; with the last one on *)
(* the node the CR is gone for good.                                       *)
DPUFinalize(r, d, t, n) ==
    /\ n \in dpu_crs_deleting[r, t]
    /\ DPUReach(r, d, t)
    /\ ApiWrite(t)
    /\ <<n, d>> \in dpu_fin[r, t]
    /\ n \notin dpu_hw[r, t, d]
    /\ LET f == dpu_fin[r, t] \ {<<n, d>>}
           gone == ~ \E e \in DPUs : <<n, e>> \in f
       IN /\ dpu_fin' = [dpu_fin EXCEPT ![r, t] = f]
          /\ dpu_crs' = IF gone THEN [dpu_crs EXCEPT ![r, t] = @ \ {n}] ELSE dpu_crs
          /\ dpu_crs_deleting' =
                IF gone THEN [dpu_crs_deleting EXCEPT ![r, t] = @ \ {n}] ELSE dpu_crs_deleting
    /\ UNCHANGED << mgmt_nodes, mgmt_controller_up, mgmt_tenant_network, tenant_nodes,
                    tenant_deleting, tenant_events, tenant_buffer, tenant_controller_up,
                    tenant_apiserver_up, tenant_etcd_up, tenant_etcd_quorum, tenant_dpu_network,
                    dpu_hw, dpu_online, rack_power, faults >>

-----------------------------------------------------------------------------
(* Faults of the kinds in FaultSet. With MaxF = 99 they are not counted. *)
Fault(k) ==
    /\ k \in FaultSet
    /\ MaxF = 99 \/ faults < MaxF
    /\ faults' = IF MaxF = 99 THEN 0 ELSE faults + 1

TenantCrash(t) ==
    /\ Fault("tenant")
    /\ tenant_controller_up[t]
    /\ tenant_controller_up' = [tenant_controller_up EXCEPT ![t] = FALSE]
    /\ tenant_buffer' = [tenant_buffer EXCEPT ![t] = {}]
    /\ UNCHANGED << mgmt_nodes, mgmt_controller_up, mgmt_tenant_network, tenant_nodes,
                    tenant_deleting, tenant_events, tenant_apiserver_up, tenant_etcd_up,
                    tenant_etcd_quorum, tenant_dpu_network, dpu_crs, dpu_crs_deleting, dpu_fin,
                    dpu_hw, dpu_online, rack_power >>

TenantRecover(t) ==
    /\ ~tenant_controller_up[t]
    /\ ApiRead(t)
    /\ tenant_controller_up' = [tenant_controller_up EXCEPT ![t] = TRUE]
    /\ tenant_buffer' = [tenant_buffer EXCEPT ![t] = tenant_nodes[t] \ tenant_deleting[t]]
    /\ UNCHANGED << mgmt_nodes, mgmt_controller_up, mgmt_tenant_network, tenant_nodes,
                    tenant_deleting, tenant_events, tenant_apiserver_up, tenant_etcd_up,
                    tenant_etcd_quorum, tenant_dpu_network, dpu_crs, dpu_crs_deleting, dpu_fin,
                    dpu_hw, dpu_online, rack_power, faults >>

EtcdDown(t) ==
    /\ Fault("etcd")
    /\ tenant_etcd_up[t]
    /\ tenant_etcd_up' = [tenant_etcd_up EXCEPT ![t] = FALSE]
    /\ tenant_etcd_quorum' = [tenant_etcd_quorum EXCEPT ![t] = FALSE]
    /\ UNCHANGED << mgmt_nodes, mgmt_controller_up, mgmt_tenant_network, tenant_nodes,
                    tenant_deleting, tenant_events, tenant_buffer, tenant_controller_up,
                    tenant_apiserver_up, tenant_dpu_network, dpu_crs, dpu_crs_deleting, dpu_fin,
                    dpu_hw, dpu_online, rack_power >>

EtcdUp(t) ==
    /\ ~tenant_etcd_up[t]
    /\ tenant_etcd_up' = [tenant_etcd_up EXCEPT ![t] = TRUE]
    /\ tenant_etcd_quorum' = [tenant_etcd_quorum EXCEPT ![t] = TRUE]
    /\ UNCHANGED << mgmt_nodes, mgmt_controller_up, mgmt_tenant_network, tenant_nodes,
                    tenant_deleting, tenant_events, tenant_buffer, tenant_controller_up,
                    tenant_apiserver_up, tenant_dpu_network, dpu_crs, dpu_crs_deleting, dpu_fin,
                    dpu_hw, dpu_online, rack_power, faults >>

EtcdLoseQuorum(t) ==
    /\ Fault("quorum")
    /\ tenant_etcd_up[t]
    /\ tenant_etcd_quorum[t]
    /\ tenant_etcd_quorum' = [tenant_etcd_quorum EXCEPT ![t] = FALSE]
    /\ UNCHANGED << mgmt_nodes, mgmt_controller_up, mgmt_tenant_network, tenant_nodes,
                    tenant_deleting, tenant_events, tenant_buffer, tenant_controller_up,
                    tenant_apiserver_up, tenant_etcd_up, tenant_dpu_network, dpu_crs,
                    dpu_crs_deleting, dpu_fin, dpu_hw, dpu_online, rack_power >>

EtcdRegainQuorum(t) ==
    /\ tenant_etcd_up[t]
    /\ ~tenant_etcd_quorum[t]
    /\ tenant_etcd_quorum' = [tenant_etcd_quorum EXCEPT ![t] = TRUE]
    /\ UNCHANGED << mgmt_nodes, mgmt_controller_up, mgmt_tenant_network, tenant_nodes,
                    tenant_deleting, tenant_events, tenant_buffer, tenant_controller_up,
                    tenant_apiserver_up, tenant_etcd_up, tenant_dpu_network, dpu_crs,
                    dpu_crs_deleting, dpu_fin, dpu_hw, dpu_online, rack_power, faults >>

ApiServerDown(t) ==
    /\ Fault("api")
    /\ tenant_apiserver_up[t]
    /\ tenant_apiserver_up' = [tenant_apiserver_up EXCEPT ![t] = FALSE]
    /\ UNCHANGED << mgmt_nodes, mgmt_controller_up, mgmt_tenant_network, tenant_nodes,
                    tenant_deleting, tenant_events, tenant_buffer, tenant_controller_up,
                    tenant_etcd_up, tenant_etcd_quorum, tenant_dpu_network, dpu_crs,
                    dpu_crs_deleting, dpu_fin, dpu_hw, dpu_online, rack_power >>

ApiServerUp(t) ==
    /\ ~tenant_apiserver_up[t]
    /\ tenant_apiserver_up' = [tenant_apiserver_up EXCEPT ![t] = TRUE]
    /\ UNCHANGED << mgmt_nodes, mgmt_controller_up, mgmt_tenant_network, tenant_nodes,
                    tenant_deleting, tenant_events, tenant_buffer, tenant_controller_up,
                    tenant_etcd_up, tenant_etcd_quorum, tenant_dpu_network, dpu_crs,
                    dpu_crs_deleting, dpu_fin, dpu_hw, dpu_online, rack_power, faults >>

MgmtCrash ==
    /\ Fault("mgmt")
    /\ mgmt_controller_up
    /\ mgmt_controller_up' = FALSE
    /\ UNCHANGED << mgmt_nodes, mgmt_tenant_network, tenant_nodes, tenant_deleting,
                    tenant_events, tenant_buffer, tenant_controller_up, tenant_apiserver_up,
                    tenant_etcd_up, tenant_etcd_quorum, tenant_dpu_network, dpu_crs,
                    dpu_crs_deleting, dpu_fin, dpu_hw, dpu_online, rack_power >>

MgmtRecover ==
    /\ ~mgmt_controller_up
    /\ mgmt_controller_up' = TRUE
    /\ UNCHANGED << mgmt_nodes, mgmt_tenant_network, tenant_nodes, tenant_deleting,
                    tenant_events, tenant_buffer, tenant_controller_up, tenant_apiserver_up,
                    tenant_etcd_up, tenant_etcd_quorum, tenant_dpu_network, dpu_crs,
                    dpu_crs_deleting, dpu_fin, dpu_hw, dpu_online, rack_power, faults >>

MgmtTenantPartition(t) ==
    /\ Fault("mgmtnet")
    /\ mgmt_tenant_network[t]
    /\ mgmt_tenant_network' = [mgmt_tenant_network EXCEPT ![t] = FALSE]
    /\ UNCHANGED << mgmt_nodes, mgmt_controller_up, tenant_nodes, tenant_deleting,
                    tenant_events, tenant_buffer, tenant_controller_up, tenant_apiserver_up,
                    tenant_etcd_up, tenant_etcd_quorum, tenant_dpu_network, dpu_crs,
                    dpu_crs_deleting, dpu_fin, dpu_hw, dpu_online, rack_power >>

MgmtTenantHeal(t) ==
    /\ ~mgmt_tenant_network[t]
    /\ mgmt_tenant_network' = [mgmt_tenant_network EXCEPT ![t] = TRUE]
    /\ UNCHANGED << mgmt_nodes, mgmt_controller_up, tenant_nodes, tenant_deleting,
                    tenant_events, tenant_buffer, tenant_controller_up, tenant_apiserver_up,
                    tenant_etcd_up, tenant_etcd_quorum, tenant_dpu_network, dpu_crs,
                    dpu_crs_deleting, dpu_fin, dpu_hw, dpu_online, rack_power, faults >>

TenantDPUPartition(t) ==
    /\ Fault("dpunet")
    /\ tenant_dpu_network[t]
    /\ tenant_dpu_network' = [tenant_dpu_network EXCEPT ![t] = FALSE]
    /\ UNCHANGED << mgmt_nodes, mgmt_controller_up, mgmt_tenant_network, tenant_nodes,
                    tenant_deleting, tenant_events, tenant_buffer, tenant_controller_up,
                    tenant_apiserver_up, tenant_etcd_up, tenant_etcd_quorum, dpu_crs,
                    dpu_crs_deleting, dpu_fin, dpu_hw, dpu_online, rack_power >>

TenantDPUHeal(t) ==
    /\ ~tenant_dpu_network[t]
    /\ tenant_dpu_network' = [tenant_dpu_network EXCEPT ![t] = TRUE]
    /\ UNCHANGED << mgmt_nodes, mgmt_controller_up, mgmt_tenant_network, tenant_nodes,
                    tenant_deleting, tenant_events, tenant_buffer, tenant_controller_up,
                    tenant_apiserver_up, tenant_etcd_up, tenant_etcd_quorum, dpu_crs,
                    dpu_crs_deleting, dpu_fin, dpu_hw, dpu_online, rack_power, faults >>

PowerOff(r) ==
    /\ Fault("power")
    /\ rack_power[r]
    /\ rack_power' = [rack_power EXCEPT ![r] = FALSE]
    /\ dpu_online' = [p \in Racks, d \in DPUs |-> IF p = r THEN FALSE ELSE dpu_online[p, d]]
    /\ dpu_hw' = [p \in Racks, t \in Tenants, d \in DPUs |->
                    IF p = r THEN {} ELSE dpu_hw[p, t, d]]
    /\ UNCHANGED << mgmt_nodes, mgmt_controller_up, mgmt_tenant_network, tenant_nodes,
                    tenant_deleting, tenant_events, tenant_buffer, tenant_controller_up,
                    tenant_apiserver_up, tenant_etcd_up, tenant_etcd_quorum, tenant_dpu_network,
                    dpu_crs, dpu_crs_deleting, dpu_fin >>

PowerOn(r) ==
    /\ ~rack_power[r]
    /\ rack_power' = [rack_power EXCEPT ![r] = TRUE]
    /\ dpu_online' = [p \in Racks, d \in DPUs |-> IF p = r THEN TRUE ELSE dpu_online[p, d]]
    /\ UNCHANGED << mgmt_nodes, mgmt_controller_up, mgmt_tenant_network, tenant_nodes,
                    tenant_deleting, tenant_events, tenant_buffer, tenant_controller_up,
                    tenant_apiserver_up, tenant_etcd_up, tenant_etcd_quorum, tenant_dpu_network,
                    dpu_crs, dpu_crs_deleting, dpu_fin, dpu_hw, faults >>

(* A crash may or may not lose what was in hardware: hardware that kept    *)
(* forwarding, or hardware that restarted empty.                           *)
DPUCrash(r, d) ==
    /\ Fault("dpu")
    /\ rack_power[r]
    /\ dpu_online[r, d]
    /\ dpu_online' = [dpu_online EXCEPT ![r, d] = FALSE]
    /\ \E keep \in BOOLEAN :
          dpu_hw' = IF keep
                    THEN dpu_hw
                    ELSE [p \in Racks, t \in Tenants, e \in DPUs |->
                            IF p = r /\ e = d THEN {} ELSE dpu_hw[p, t, e]]
    /\ UNCHANGED << mgmt_nodes, mgmt_controller_up, mgmt_tenant_network, tenant_nodes,
                    tenant_deleting, tenant_events, tenant_buffer, tenant_controller_up,
                    tenant_apiserver_up, tenant_etcd_up, tenant_etcd_quorum, tenant_dpu_network,
                    dpu_crs, dpu_crs_deleting, dpu_fin, rack_power >>

DPURecover(r, d) ==
    /\ rack_power[r]
    /\ ~dpu_online[r, d]
    /\ dpu_online' = [dpu_online EXCEPT ![r, d] = TRUE]
    /\ UNCHANGED << mgmt_nodes, mgmt_controller_up, mgmt_tenant_network, tenant_nodes,
                    tenant_deleting, tenant_events, tenant_buffer, tenant_controller_up,
                    tenant_apiserver_up, tenant_etcd_up, tenant_etcd_quorum, tenant_dpu_network,
                    dpu_crs, dpu_crs_deleting, dpu_fin, dpu_hw, rack_power, faults >>

-----------------------------------------------------------------------------
FaultStep ==
    \/ MgmtCrash
    \/ \E t \in Tenants :
          TenantCrash(t) \/ EtcdDown(t) \/ EtcdLoseQuorum(t) \/ ApiServerDown(t)
             \/ MgmtTenantPartition(t) \/ TenantDPUPartition(t)
    \/ \E r \in Racks : PowerOff(r) \/ \E d \in DPUs : DPUCrash(r, d)

RecoverT(t) ==
    \/ TenantRecover(t)
    \/ EtcdUp(t)
    \/ EtcdRegainQuorum(t)
    \/ ApiServerUp(t)
    \/ MgmtTenantHeal(t)
    \/ TenantDPUHeal(t)

Next ==
    \/ FaultStep
    \/ MgmtRecover
    \/ \E t \in Tenants :
          \/ MgmtAssign(t)
          \/ MgmtReclaim(t)
          \/ TenantFlush(t)
          \/ \E n \in Nodes : MgmtReturn(t, n) \/ TenantWatch(t, n)
          \/ RecoverT(t)
    \/ \E r \in Racks, t \in Tenants :
          \/ TenantCleanup(r, t)
          \/ \E d \in DPUs, n \in Nodes : DPUReconcile(r, d, t, n) \/ DPUFinalize(r, d, t, n)
    \/ \E r \in Racks : PowerOn(r) \/ \E d \in DPUs : DPURecover(r, d)

Fairness ==
    /\ WF_Vars(MgmtRecover)
    /\ \A t \in Tenants :
          /\ WF_Vars(TenantRecover(t))
          /\ WF_Vars(EtcdUp(t))
          /\ WF_Vars(EtcdRegainQuorum(t))
          /\ WF_Vars(ApiServerUp(t))
          /\ WF_Vars(MgmtTenantHeal(t))
          /\ WF_Vars(TenantDPUHeal(t))
          /\ WF_Vars(TenantFlush(t))
          /\ \A n \in Nodes : WF_Vars(MgmtReturn(t, n)) /\ WF_Vars(TenantWatch(t, n))
    /\ \A r \in Racks : WF_Vars(PowerOn(r)) /\ \A d \in DPUs : WF_Vars(DPURecover(r, d))
    /\ \A r \in Racks, t \in Tenants :
          /\ WF_Vars(TenantCleanup(r, t))
          /\ \A d \in DPUs, n \in Nodes :
                /\ WF_Vars(DPUReconcile(r, d, t, n))
                /\ WF_Vars(DPUFinalize(r, d, t, n))

Spec == Init /\ [][Next]_Vars /\ Fairness

-----------------------------------------------------------------------------
TenantIsolation ==
    \A n \in Nodes :
       Cardinality({t \in Tenants : \E r \in Racks, d \in DPUs : n \in dpu_hw[r, t, d]}) <= 1

NodeSingleAssignment ==
    \A n \in Nodes :
       Cardinality({t \in Tenants : n \in tenant_nodes[t]})
          + (IF n \in mgmt_nodes THEN 1 ELSE 0) = 1

RackAffinity ==
    \A n \in Nodes, r \in Racks, t \in Tenants, d \in DPUs :
       n \in dpu_hw[r, t, d] => NodeRack[n] = r

DPUAffinity ==
    \A n \in Nodes, r \in Racks, t \in Tenants, d \in DPUs :
       n \in dpu_hw[r, t, d] => <<r, d>> \in NodeDPUs[n]

HardwareIsOwned ==
    \A n \in Nodes, r \in Racks, t \in Tenants, d \in DPUs :
       n \in dpu_hw[r, t, d] => n \in tenant_nodes[t]

PoolIsClean ==
    \A n \in mgmt_nodes, r \in Racks, t \in Tenants :
       n \notin dpu_crs[r, t] /\ \A d \in DPUs : n \notin dpu_hw[r, t, d]

FinalizersOK ==
    \A r \in Racks, t \in Tenants :
       /\ dpu_crs_deleting[r, t] \subseteq dpu_crs[r, t]
       /\ {x[1] : x \in dpu_fin[r, t]} = dpu_crs[r, t]

ASSUME
    \A n \in Nodes :
       NodeDPUs[n] # {} /\ \A p \in NodeDPUs[n] :
          p[1] = NodeRack[n] /\ p[1] \in Racks /\ p[2] \in DPUs

Programmed(n, t) ==
    \A r \in Racks, d \in DPUs : <<r, d>> \in NodeDPUs[n] => n \in dpu_hw[r, t, d]

EventualConsistency ==
    \A n \in Nodes, t \in Tenants :
       (n \in tenant_nodes[t])
          ~> (Programmed(n, t) \/ n \notin tenant_nodes[t] \/ n \in tenant_deleting[t])

ReclaimCompletes == \A n \in Nodes, t \in Tenants : (n \in tenant_deleting[t]) ~> (n \in mgmt_nodes)

NeverReclaimedOnceProgrammed ==
    [][\A n \in Nodes, t \in Tenants :
          (Programmed(n, t) /\ n \in tenant_nodes[t]) => n \in tenant_nodes'[t]]_Vars
=============================================================================
