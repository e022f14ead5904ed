---------------------- MODULE MC_dpu_two_step_flush ----------------------
(* Defect 8 of dpu_multi_tenant: the flush as two steps, a read of the    *)
(* assignment and a later write, as over a network.                       *)
EXTENDS dpu_multi_tenant

VARIABLE read   \* [Tenants -> SUBSET Nodes] read as assigned, about to be written

FlushRead ==
    \E t \in Tenants :
       /\ CanWrite(t)
       /\ tenant_buffer[t] # {}
       /\ read' = [read EXCEPT ![t] = tenant_buffer[t] \cap tenant_nodes[t]]
       /\ tenant_buffer' = [tenant_buffer EXCEPT ![t] = {}]
       /\ UNCHANGED << mgmt, queues, tenant_controller_up, plane, device >>

FlushWrite ==
    \E t \in Tenants :
       /\ CanWrite(t)
       /\ read[t] # {}
       /\ dpu_crs' =
             [r \in Racks, u \in Tenants |->
                IF u = t THEN dpu_crs[r, u] \cup {n \in read[t] : NodeRack[n] = r}
                         ELSE dpu_crs[r, u]]
       /\ read' = [read EXCEPT ![t] = {}]
       /\ UNCHANGED << mgmt, assign, tenant_events, tenant_buffer, tenant_controller_up, plane,
                       dpu_crs_delete_queue, device >>

AllButFlush ==
    \/ MgmtAssign
    \/ MgmtReclaim
    \/ TenantWatch
    \/ DPUReconcile
    \/ TenantCleanup
    \/ ProcessCRDeletion
    \/ Faults

TwoStepInit == Init /\ read = [t \in Tenants |-> {}]

TwoStepNext ==
    \/ FlushRead
    \/ FlushWrite
    \/ AllButFlush /\ UNCHANGED read

TwoStepSpec == TwoStepInit /\ [][TwoStepNext]_<<vars, read>>
==========================================================================
