----------------------------- MODULE Rollouts -----------------------------
(* Versions are applied to one target, object by object, by controllers   *)
(* that may be taken over at any moment and whose writes may land late.   *)
(*                                                                        *)
(* Every attempt (apply, rollback, take-over) gets a token that only      *)
(* grows. Before it writes it raises a fence at the target to its token;  *)
(* the target refuses writes with an older one. What the attempt believes *)
(* about the objects it has read after the fence was up. An object that   *)
(* is to be deleted is first marked with the token, since a delete cannot *)
(* carry one.                                                             *)
(*                                                                        *)
(* Each boolean constant switches one guard off.                          *)
EXTENDS Integers, FiniteSets

CONSTANTS
    MaxV,            \* bound on versions
    MaxMsg,          \* bound on writes in flight
    MaxTake,         \* bound on take-overs
    Objs,            \* the objects: "o1" is in every version, "o2" in the even ones only
    Fence,           \* FALSE: the target has no fence
    ReadAfterFence,  \* FALSE: objects read before the fence count as well
    RvGuard,         \* FALSE: writes to an existing object carry no resourceVersion
    MarkFirst,       \* FALSE: objects are deleted without a mark
    TokGuard         \* FALSE: an attempt writes over the mark of a newer one

(* What version v wants: which objects, and which value in each. *)
Des(v)    == IF v = 0 THEN {} ELSE IF v % 2 = 0 THEN Objs ELSE Objs \ {"o2"}
Val(o, v) == IF o = "o1" THEN 1 ELSE v

Unknown == [ex |-> FALSE, val |-> 99, rv |-> 99, tok |-> 0]
Abs     == [ex |-> FALSE, val |-> 0, rv |-> 0, tok |-> 0]
MaxA    == 2 * MaxV + MaxTake

VARIABLES
    lastV,  \* number of the latest request
    q,      \* version that is queued; 0: none
    act,    \* version in flight; 0: none
    ph,     \* what goes on: "Idle", "Applying", "Verifying", "RollingBack"
    token,  \* token of the present attempt
    tgt,    \* [token -> version] what each attempt is to bring about
    good,   \* last version that was healthy
    deg,    \* a rollback has failed since
    phase,  \* [version -> phase of its request]
    obj,    \* [Objs -> [ex, val, rv, tok]] the objects at the target
    seen,   \* [Objs -> the same, or Unknown] what the present attempt has read
    fence,  \* the target refuses tokens below this
    msg,    \* writes in flight
    nrv,    \* next resourceVersion
    take    \* take-overs so far

vars == << lastV, q, act, ph, token, tgt, good, deg, phase, obj, seen, fence, msg, nrv, take >>

Init ==
    /\ lastV = 0
    /\ q     = 0
    /\ act   = 0
    /\ ph    = "Idle"
    /\ token = 0
    /\ tgt   = [a \in 0..MaxA |-> 0]
    /\ good  = 0
    /\ deg   = FALSE
    /\ phase = [v \in 1..MaxV |-> "New"]
    /\ obj   = [o \in Objs |-> Abs]
    /\ seen  = [o \in Objs |-> Unknown]
    /\ fence = 0
    /\ msg   = {}
    /\ nrv   = 1
    /\ take  = 0

--------------------------------------------------------------------------
(* Requests. A newer one supersedes the queued one, in the same write.    *)

Submit ==
    /\ lastV < MaxV
    /\ lastV' = lastV + 1
    /\ q' = lastV + 1
    /\ phase' = [v \in 1..MaxV |->
                   IF v = lastV + 1 THEN "Queued" ELSE IF v = q THEN "Superseded" ELSE phase[v]]
    /\ UNCHANGED << act, ph, token, tgt, good, deg, obj, seen, fence, msg, nrv, take >>

Reject ==
    /\ lastV < MaxV
    /\ lastV' = lastV + 1
    /\ phase' = [phase EXCEPT ![lastV + 1] = "Rejected"]
    /\ UNCHANGED << q, act, ph, token, tgt, good, deg, obj, seen, fence, msg, nrv, take >>

--------------------------------------------------------------------------
(* The controller. *)

(* A new attempt knows nothing: what an older one read may be undone by a *)
(* write that was still in flight.                                        *)
Begin(v, p) ==
    /\ token' = token + 1
    /\ tgt' = [tgt EXCEPT ![token + 1] = v]
    /\ ph' = p
    /\ seen' = IF ReadAfterFence THEN [o \in Objs |-> Unknown] ELSE seen

Start ==
    /\ ph = "Idle"
    /\ q # 0
    /\ act' = q
    /\ q' = 0
    /\ phase' = [phase EXCEPT ![q] = "Applying"]
    /\ Begin(q, "Applying")
    /\ UNCHANGED << lastV, good, deg, obj, fence, msg, nrv, take >>

(* Refused before anything was changed. *)
Preflight ==
    /\ ph = "Idle"
    /\ q # 0
    /\ q' = 0
    /\ phase' = [phase EXCEPT ![q] = "Failed"]
    /\ UNCHANGED << lastV, act, ph, token, tgt, good, deg, obj, seen, fence, msg, nrv, take >>

(* Another controller goes on where this one stood. *)
Take ==
    /\ ph # "Idle"
    /\ take < MaxTake
    /\ take' = take + 1
    /\ Begin(tgt[token], ph)
    /\ UNCHANGED << lastV, q, act, good, deg, phase, obj, fence, msg, nrv >>

(* Everything is as this attempt wants it, by what it has read itself. *)
Done ==
    LET v == tgt[token] IN
    /\ Fence => fence = token
    /\ \A o \in Objs :
          /\ seen[o].rv # 99
          /\ IF o \in Des(v) THEN seen[o].ex /\ seen[o].val = Val(o, v) ELSE ~seen[o].ex

ApplyDone ==
    /\ ph = "Applying"
    /\ Done
    /\ ph' = "Verifying"
    /\ phase' = [phase EXCEPT ![act] = "Verifying"]
    /\ UNCHANGED << lastV, q, act, token, tgt, good, deg, obj, seen, fence, msg, nrv, take >>

Healthy ==
    /\ ph = "Verifying"
    /\ Done
    /\ ph' = "Idle"
    /\ good' = act
    /\ deg' = FALSE
    /\ phase' = [phase EXCEPT ![act] = "Succeeded"]
    /\ act' = 0
    /\ UNCHANGED << lastV, q, token, tgt, obj, seen, fence, msg, nrv, take >>

Fail ==
    /\ ph \in {"Applying", "Verifying"}
    /\ phase' = [phase EXCEPT ![act] = "RollingBack"]
    /\ Begin(good, "RollingBack")
    /\ UNCHANGED << lastV, q, act, good, deg, obj, fence, msg, nrv, take >>

RbOk ==
    /\ ph = "RollingBack"
    /\ Done
    /\ ph' = "Idle"
    /\ deg' = FALSE
    /\ phase' = [phase EXCEPT ![act] = "RolledBack"]
    /\ act' = 0
    /\ UNCHANGED << lastV, q, token, tgt, good, obj, seen, fence, msg, nrv, take >>

RbBad ==
    /\ ph = "RollingBack"
    /\ ph' = "Idle"
    /\ deg' = TRUE
    /\ phase' = [phase EXCEPT ![act] = "RollbackFailed"]
    /\ act' = 0
    /\ UNCHANGED << lastV, q, token, tgt, good, obj, seen, fence, msg, nrv, take >>

SetFence ==
    /\ Fence
    /\ ph # "Idle"
    /\ fence < token
    /\ fence' = token
    /\ UNCHANGED << lastV, q, act, ph, token, tgt, good, deg, phase, obj, seen, msg, nrv, take >>

--------------------------------------------------------------------------
(* Writes. The sender may be any attempt that ever was: one that slept    *)
(* past its take-over wakes with an old plan and a fresh look at objects. *)

Put(o, a, v, x) == [o |-> o, k |-> "put", tok |-> a, val |-> v, pre |-> x.rv]
Del(o, a, x)    == [o |-> o, k |-> "del", tok |-> a, val |-> 0, pre |-> x.rv]

(* An unwanted object is marked first and deleted when the mark is seen:   *)
(* the mark moves its resourceVersion, so an older delete misses it.       *)
Send(o, a) ==
    /\ Cardinality(msg) < MaxMsg
    /\ a \in 1..token
    /\ Fence => fence >= a
    /\ LET v == tgt[a]
           x == obj[o]
       IN /\ TokGuard => x.tok <= a
          /\ IF o \in Des(v)
             THEN /\ ~x.ex \/ x.val # Val(o, v)
                  /\ msg' = msg \cup {Put(o, a, Val(o, v), x)}
             ELSE /\ x.ex
                  /\ IF MarkFirst /\ x.tok # a
                     THEN msg' = msg \cup {Put(o, a, x.val, x)}
                     ELSE msg' = msg \cup {Del(o, a, x)}
    /\ msg' # msg
    /\ UNCHANGED << lastV, q, act, ph, token, tgt, good, deg, phase, obj, seen, fence, nrv,
                    take >>

(* The target's admission: a put shows its own token, a delete that of the *)
(* object it is about to remove.                                           *)
Admitted(m) ==
    Fence => IF m.k = "put" THEN m.tok >= fence ELSE MarkFirst => obj[m.o].tok >= fence

Land ==
    \E m \in msg :
       /\ msg' = msg \ {m}
       /\ IF /\ obj[m.o].rv = m.pre \/ (~RvGuard /\ m.pre # 0 /\ obj[m.o].ex)
             /\ Admitted(m)
          THEN /\ obj' = [obj EXCEPT ![m.o] =
                            IF m.k = "put"
                            THEN [ex |-> TRUE, val |-> m.val, rv |-> nrv, tok |-> m.tok]
                            ELSE Abs]
               /\ nrv' = nrv + 1
          ELSE UNCHANGED << obj, nrv >>
       /\ UNCHANGED << lastV, q, act, ph, token, tgt, good, deg, phase, seen, fence, take >>

See(o) ==
    /\ ReadAfterFence => ph # "Idle" /\ (Fence => fence = token)
    /\ seen[o] # obj[o]
    /\ seen' = [seen EXCEPT ![o] = obj[o]]
    /\ UNCHANGED << lastV, q, act, ph, token, tgt, good, deg, phase, obj, fence, msg, nrv, take >>

--------------------------------------------------------------------------
Next ==
    \/ Submit
    \/ Reject
    \/ Start
    \/ Preflight
    \/ Take
    \/ ApplyDone
    \/ Healthy
    \/ Fail
    \/ RbOk
    \/ RbBad
    \/ SetFence
    \/ Land
    \/ \E o \in Objs :
          \/ See(o)
          \/ \E a \in 1..MaxA : Send(o, a)

(* Strong fairness for the present attempt: old attempts may take the room *)
(* for writes in flight again and again, but not for ever.                 *)
Fair ==
    /\ WF_vars(Start \/ Preflight)
    /\ WF_vars(ApplyDone)
    /\ WF_vars(Healthy \/ Fail)
    /\ WF_vars(RbOk \/ RbBad)
    /\ WF_vars(SetFence)
    /\ WF_vars(Land)
    /\ \A o \in Objs : WF_vars(See(o)) /\ SF_vars(Send(o, token))

Spec == Init /\ [][Next]_vars /\ Fair

--------------------------------------------------------------------------
Target(v) ==
    \A o \in Objs : IF o \in Des(v) THEN obj[o].ex /\ obj[o].val = Val(o, v) ELSE ~obj[o].ex

(* At rest, and no rollback has failed: the target is the last good version. *)
IdleIsGood == (ph = "Idle" /\ ~deg) => Target(good)

SingleFlight ==
    Cardinality({v \in 1..MaxV : phase[v] \in {"Applying", "Verifying", "RollingBack"}}) <= 1

OneQueued == Cardinality({v \in 1..MaxV : phase[v] = "Queued"}) <= 1

Term == {"Rejected", "Superseded", "Failed", "Succeeded", "RolledBack", "RollbackFailed"}

TerminalStable == [][\A v \in 1..MaxV : phase[v] \in Term => phase'[v] = phase[v]]_vars

EveryReqEnds == \A v \in 1..MaxV : (phase[v] # "New") ~> (phase[v] \in Term)
==========================================================================
