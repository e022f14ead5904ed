------------------------------ MODULE MigrateL ------------------------------
(* Liveness of Migrate in calm weather: no crash, no lease runs out, no    *)
(* take-over.                                                              *)
EXTENDS Migrate

(* Revoke stands under the quantifier, so TLC counts it once per cluster.  *)
LNext ==
    \/ \E d \in Clusters : Grant(d) \/ Revoke
    \/ \E c \in Clusters :
          \/ Observe(c)
          \/ Renew(c)
          \/ Populate(c)
          \/ Start(c)
          \/ Write(c)
          \/ Replicate(c)
          \/ Stop(c)
          \/ FinalSync(c)
          \/ Ack(c)

LSpec ==
    /\ Init
    /\ [][LNext]_vars
    /\ \A c \in Clusters :
          /\ WF_vars(Observe(c) /\ view'[c] # view[c])
          /\ WF_vars(Renew(c) /\ lease'[c] # lease[c])
          /\ WF_vars(Populate(c))
          /\ WF_vars(Start(c))
          /\ WF_vars(Stop(c))
          /\ WF_vars(FinalSync(c))
          /\ WF_vars(Ack(c))

RevokeEnds == (hub.ph = "Revoking") ~> (hub.ph # "Revoking")

GrantRuns ==
    \A c \in Clusters :
       (hub.o = c /\ hub.ph = "Granted") ~> (run[c] = hub.e \/ hub.ph # "Granted")
=============================================================================
