---------------------------- MODULE Identities ----------------------------
(* A resource asks for a cloud identity; workers build it, step by step.  *)
(*                                                                        *)
(* Reconcile is level triggered: a worker looks at what is, does the one  *)
(* next thing, and puts the key back. Nothing waits inside a step, so a   *)
(* worker is never held up by another resource. Cloud objects may be left *)
(* over from an earlier life, may drift without any event, calls may be   *)
(* throttled, and the process may restart at any point. Deletion goes in  *)
(* the reverse order of creation, behind a finalizer.                     *)
EXTENDS Integers, FiniteSets

CONSTANTS
    CRs,       \* the resources
    Workers,   \* the workers
    MaxDrift,  \* bound on drifts
    MaxFault,  \* bound on throttled calls and crashes
    MaxGen     \* bound on generations of a resource's spec

VARIABLES
    ph,     \* [CRs -> "live" | "deleting" | "gone"]
    gen,    \* [CRs -> generation of the spec]
    fin,    \* [CRs -> BOOLEAN] our finalizer is on it
    seen,   \* [CRs -> generation last reported ready; 0: never]
    pol,    \* [CRs -> generation of the cloud policy; 0: none, -1: not as we want it]
    role,   \* [CRs -> "none" | "ok" | "drift"] the cloud role
    att,    \* [CRs -> BOOLEAN] the policy is attached to the role
    sa,     \* [CRs -> "none" | "ok" | "drift"] the service account
    dirty,  \* keys that must be looked at
    busy,   \* [Workers -> key or None] what each worker has in hand
    drift,  \* drifts so far
    fault   \* faults so far

vars == << ph, gen, fin, seen, pol, role, att, sa, dirty, busy, drift, fault >>

None == "none"

(* A crash or an earlier life may have left cloud objects of any shape. *)
Init ==
    /\ ph    = [c \in CRs |-> "live"]
    /\ gen   = [c \in CRs |-> 1]
    /\ fin   = [c \in CRs |-> FALSE]
    /\ seen  = [c \in CRs |-> 0]
    /\ pol  \in [CRs -> {0, -1}]
    /\ role \in [CRs -> {"none", "drift"}]
    /\ att  \in [CRs -> BOOLEAN]
    /\ \A c \in CRs : att[c] => pol[c] # 0 /\ role[c] # "none"
    /\ sa    = [c \in CRs |-> "none"]
    /\ dirty = CRs
    /\ busy  = [w \in Workers |-> None]
    /\ drift = 0
    /\ fault = 0

--------------------------------------------------------------------------
(* The queue: a key is in one worker's hand at most. *)

Processing == {busy[w] : w \in Workers} \ {None}

Get(w) ==
    /\ busy[w] = None
    /\ \E c \in dirty \ Processing :
          /\ busy' = [busy EXCEPT ![w] = c]
          /\ dirty' = dirty \ {c}
    /\ UNCHANGED << ph, gen, fin, seen, pol, role, att, sa, drift, fault >>

(* The key comes back, for the next step. *)
Again(w) ==
    /\ dirty' = dirty \cup {busy[w]}
    /\ busy' = [busy EXCEPT ![w] = None]

(* Nothing left to do. What became dirty meanwhile stays dirty. *)
Rest(w) ==
    /\ dirty' = dirty
    /\ busy' = [busy EXCEPT ![w] = None]

(* Creation: the finalizer comes before the first call, or a deletion     *)
(* could leave cloud objects behind; the account comes last, since it     *)
(* promises that the role works.                                          *)
Build(w, c) ==
    IF ~fin[c]
    THEN /\ fin' = [fin EXCEPT ![c] = TRUE]
         /\ Again(w)
         /\ UNCHANGED << ph, seen, pol, role, att, sa >>
    ELSE IF pol[c] # gen[c]
    THEN /\ pol' = [pol EXCEPT ![c] = gen[c]]
         /\ Again(w)
         /\ UNCHANGED << ph, fin, seen, role, att, sa >>
    ELSE IF role[c] # "ok"
    THEN /\ role' = [role EXCEPT ![c] = "ok"]
         /\ Again(w)
         /\ UNCHANGED << ph, fin, seen, pol, att, sa >>
    ELSE IF ~att[c]
    THEN /\ att' = [att EXCEPT ![c] = TRUE]
         /\ Again(w)
         /\ UNCHANGED << ph, fin, seen, pol, role, sa >>
    ELSE IF sa[c] # "ok"
    THEN /\ sa' = [sa EXCEPT ![c] = "ok"]
         /\ Again(w)
         /\ UNCHANGED << ph, fin, seen, pol, role, att >>
    ELSE /\ seen' = [seen EXCEPT ![c] = gen[c]]
         /\ Rest(w)
         /\ UNCHANGED << ph, fin, pol, role, att, sa >>

(* Deletion: the cloud refuses to delete a policy that is attached, and   *)
(* the finalizer goes when nothing is left.                               *)
TearDown(w, c) ==
    IF ~fin[c]
    THEN /\ ph' = [ph EXCEPT ![c] = "gone"]
         /\ Rest(w)
         /\ UNCHANGED << fin, seen, pol, role, att, sa >>
    ELSE IF sa[c] # "none"
    THEN /\ sa' = [sa EXCEPT ![c] = "none"]
         /\ Again(w)
         /\ UNCHANGED << ph, fin, seen, pol, role, att >>
    ELSE IF att[c]
    THEN /\ att' = [att EXCEPT ![c] = FALSE]
         /\ Again(w)
         /\ UNCHANGED << ph, fin, seen, pol, role, sa >>
    ELSE IF role[c] # "none"
    THEN /\ role' = [role EXCEPT ![c] = "none"]
         /\ Again(w)
         /\ UNCHANGED << ph, fin, seen, pol, att, sa >>
    ELSE IF pol[c] # 0
    THEN /\ pol' = [pol EXCEPT ![c] = 0]
         /\ Again(w)
         /\ UNCHANGED << ph, fin, seen, role, att, sa >>
    ELSE /\ fin' = [fin EXCEPT ![c] = FALSE]
         /\ ph' = [ph EXCEPT ![c] = "gone"]
         /\ Rest(w)
         /\ UNCHANGED << seen, pol, role, att, sa >>

Work(w) ==
    /\ busy[w] # None
    /\ LET c == busy[w] IN
       IF ph[c] = "live" THEN Build(w, c)
       ELSE IF ph[c] = "deleting" THEN TearDown(w, c)
       ELSE Rest(w) /\ UNCHANGED << ph, fin, seen, pol, role, att, sa >>
    /\ UNCHANGED << gen, drift, fault >>

--------------------------------------------------------------------------
(* Faults, the user, and the world. *)

(* The call was refused: nothing done, the key comes back. *)
Throttle(w) ==
    /\ busy[w] # None
    /\ fault < MaxFault
    /\ fault' = fault + 1
    /\ Again(w)
    /\ UNCHANGED << ph, gen, fin, seen, pol, role, att, sa, drift >>

(* The process restarts: hands and queue are lost, and the list puts every *)
(* key back. A crash right after an effect is Work followed by this.       *)
CrashAll ==
    /\ fault < MaxFault
    /\ fault' = fault + 1
    /\ busy' = [w \in Workers |-> None]
    /\ dirty' = CRs
    /\ UNCHANGED << ph, gen, fin, seen, pol, role, att, sa, drift >>

Update(c) ==
    /\ ph[c] = "live"
    /\ gen[c] < MaxGen
    /\ gen' = [gen EXCEPT ![c] = @ + 1]
    /\ dirty' = dirty \cup {c}
    /\ UNCHANGED << ph, fin, seen, pol, role, att, sa, busy, drift, fault >>

Delete(c) ==
    /\ ph[c] = "live"
    /\ fin[c]
    /\ ph' = [ph EXCEPT ![c] = "deleting"]
    /\ dirty' = dirty \cup {c}
    /\ UNCHANGED << gen, fin, seen, pol, role, att, sa, busy, drift, fault >>

(* Someone changes or removes one thing. There is no event for it. *)
Drift(c) ==
    /\ drift < MaxDrift
    /\ drift' = drift + 1
    /\ ph[c] = "live"
    /\ \/ /\ pol[c] > 0
          /\ pol' = [pol EXCEPT ![c] = -1]
          /\ UNCHANGED << role, att, sa >>
       \/ /\ role[c] = "ok"
          /\ role' = [role EXCEPT ![c] = "drift"]
          /\ UNCHANGED << pol, att, sa >>
       \/ /\ att[c]
          /\ att' = [att EXCEPT ![c] = FALSE]
          /\ UNCHANGED << pol, role, sa >>
       \/ /\ sa[c] = "ok"
          /\ sa' = [sa EXCEPT ![c] = "drift"]
          /\ UNCHANGED << pol, role, att >>
    /\ UNCHANGED << ph, gen, fin, seen, dirty, busy, fault >>

Bad(c) == pol[c] # gen[c] \/ role[c] # "ok" \/ ~att[c] \/ sa[c] # "ok"

(* So only a resync finds it. *)
Resync(c) ==
    /\ ph[c] = "live"
    /\ c \notin dirty
    /\ Bad(c)
    /\ dirty' = dirty \cup {c}
    /\ UNCHANGED << ph, gen, fin, seen, pol, role, att, sa, busy, drift, fault >>

--------------------------------------------------------------------------
(* CrashAll stands under the quantifier, so TLC counts it once per worker. *)
Next ==
    \/ \E w \in Workers :
          \/ Get(w)
          \/ Work(w)
          \/ Throttle(w)
          \/ CrashAll
    \/ \E c \in CRs :
          \/ Update(c)
          \/ Delete(c)
          \/ Drift(c)
          \/ Resync(c)

(* Some worker takes the key c. *)
GetC(c) ==
    /\ \E w \in Workers :
          /\ busy[w] = None
          /\ c \in dirty \ Processing
          /\ busy' = [busy EXCEPT ![w] = c]
          /\ dirty' = dirty \ {c}
    /\ UNCHANGED << ph, gen, fin, seen, pol, role, att, sa, drift, fault >>

(* Strong fairness per key is what a first-in first-out queue gives: a key *)
(* is not passed over for ever.                                            *)
Fair ==
    /\ \A c \in CRs : SF_vars(GetC(c)) /\ WF_vars(Resync(c))
    /\ \A w \in Workers : WF_vars(Work(w))

Spec == Init /\ [][Next]_vars /\ Fair

--------------------------------------------------------------------------
NoConcurrent == \A v, w \in Workers : v # w /\ busy[v] # None => busy[v] # busy[w]

GoneIsClean ==
    \A c \in CRs :
       ph[c] = "gone" => pol[c] = 0 /\ role[c] = "none" /\ ~att[c] /\ sa[c] = "none"

AwsOrder == \A c \in CRs : att[c] => pol[c] # 0 /\ role[c] # "none"

Converges == \A c \in CRs : <>[](ph[c] = "live") => <>[](~Bad(c) /\ seen[c] = gen[c])

Deletes == \A c \in CRs : (ph[c] = "deleting") ~> (ph[c] = "gone")

(* A worker holds c, and its step changes something or puts the key back.  *)
Effects(c) ==
    \E w \in Workers :
       /\ busy[w] = c
       /\ Work(w)
       /\ \/ << ph, fin, seen, pol, role, att, sa >>' # << ph, fin, seen, pol, role, att, sa >>
          \/ c \in dirty'

(* The seed's promise in a form that means it. Edits, drift and faults are *)
(* counted, so what stays declared is left alone in the end: it becomes as *)
(* declared, and then nothing is written.                                  *)
TerminationIsTheLastAction ==
    \A c \in CRs :
       <>[](ph[c] = "live") => <>[](~Bad(c) /\ seen[c] = gen[c] /\ ~ENABLED Effects(c))
==========================================================================
