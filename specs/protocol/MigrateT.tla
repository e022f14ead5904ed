------------------------------ MODULE MigrateT ------------------------------
(* Migrate with one fault more: a restarted syncer may list from an API    *)
(* server that lags, so its view may go back to any past grant.            *)
EXTENDS Migrate

CONSTANT TimeTravel   \* FALSE: views only go forward, as in Migrate

VARIABLE hist         \* every value that hub has had

tvars == << hist, vars >>

TInit == Init /\ hist = {hub}

TimeWarp(c) ==
    /\ TimeTravel
    /\ \E h \in hist : view' = [view EXCEPT ![c] = h]
    /\ UNCHANGED << hub, rel, run, lease, pop, fin, vol, img, nw, must >>

TNext ==
    /\ Next \/ \E c \in Clusters : TimeWarp(c)
    /\ hist' = IF TimeTravel THEN hist \cup {hub'} ELSE hist

TSpec == TInit /\ [][TNext]_tvars
=============================================================================
