------------------------ MODULE IrsaOperatorFixed ------------------------
(* IrsaOperator repaired: every pass does one thing and gives the key      *)
(* back; AWS effects and status writes are separate steps, so a crash can  *)
(* fall between them; progress of a dependency re-queues what depends on   *)
(* it instead of a worker waiting in place.                                *)
(*                                                                         *)
(* The operator may restart (everything is re-listed), AWS may drift, and *)
(* the user may edit the resource. Resync finds drift when nothing else    *)
(* would.                                                                   *)
EXTENDS Naturals, Sequences, FiniteSets

CONSTANTS
    NULL,       \* nothing there
    _workers,   \* the reconcile loops that run side by side
    MaxCrash,   \* bound on restarts
    MaxDrift,   \* bound on drifts
    MaxEdit,    \* bound on edits of the spec
    Resync      \* TRUE: a quiet, mismatched resource is re-queued once more

iReq  == "irsa"
pReq  == "policy"
rReq  == "role"
saReq == "sa"
Reqs  == {iReq, pReq, rReq, saReq}

PA == "policyARN"
RA == "roleARN"

VARIABLES
    irsa,       \* the resource: [st, stmt]
    policy,     \* the policy: [st, stmt, awsPolicyArn]
    role,       \* the role: [st, roleArn, policyArn, policiesAttached]
    sa,         \* the service account: [st, roleArn]
    awsPolicy,  \* the policy at AWS: [arn, stmt]
    awsRole,    \* the role at AWS: [arn, attachedPolicy]
    wq,         \* the work queue: [dirty, processing, queue]
    workers,    \* [_workers -> [idle, req]]
    modified,   \* keys that changed, not yet delivered
    n           \* [crash, drift, edit] counts so far, to bound them

vars == << irsa, policy, role, sa, awsPolicy, awsRole, wq, workers, modified, n >>

K8s == << irsa, policy, role, sa >>
Aws == << awsPolicy, awsRole >>

Init ==
    /\ irsa = [st |-> NULL, stmt |-> "s1"]
    /\ policy = [st |-> NULL, stmt |-> NULL, awsPolicyArn |-> NULL]
    /\ role = [st |-> NULL, roleArn |-> NULL, policyArn |-> NULL, policiesAttached |-> FALSE]
    /\ sa = [st |-> NULL, roleArn |-> NULL]
    \* Nothing there, or left over from before under another statement.
    /\ awsPolicy \in {[arn |-> NULL, stmt |-> NULL], [arn |-> PA, stmt |-> "other"]}
    /\ awsRole = [arn |-> NULL, attachedPolicy |-> NULL]
    /\ modified = <<iReq>>
    /\ wq = [dirty |-> {}, processing |-> {}, queue |-> <<>>]
    /\ workers = [w \in _workers |-> [idle |-> TRUE, req |-> NULL]]
    /\ n = [crash |-> 0, drift |-> 0, edit |-> 0]

-----------------------------------------------------------------------------
Range(s) == {s[i] : i \in 1..Len(s)}

(* Keys that are not waiting to be delivered yet are appended, in order.   *)
(* So modified stays bounded, unlike in the seed.                          *)
RECURSIVE AddAll(_, _)
AddAll(s, q) ==
    IF q = <<>>
    THEN s
    ELSE AddAll(IF Head(q) \in Range(s) THEN s ELSE Append(s, Head(q)), Tail(q))

Enqueue(q) == modified' = AddAll(modified, q)

Add ==
    /\ modified # <<>>
    /\ modified' = Tail(modified)
    /\ LET e == Head(modified) IN
       IF e \in wq.dirty
       THEN UNCHANGED wq
       ELSE wq' = IF e \in wq.processing
                  THEN [wq EXCEPT !.dirty = @ \cup {e}]
                  ELSE [wq EXCEPT !.dirty = @ \cup {e}, !.queue = Append(@, e)]
    /\ UNCHANGED << K8s, Aws, workers, n >>

Get(w) ==
    /\ workers[w].req = NULL
    /\ wq.queue # <<>>
    /\ LET h == Head(wq.queue) IN
       /\ workers' = [workers EXCEPT ![w] = [idle |-> FALSE, req |-> h]]
       /\ wq' = [queue |-> Tail(wq.queue), dirty |-> wq.dirty \ {h},
                 processing |-> wq.processing \cup {h}]
    /\ UNCHANGED << K8s, Aws, modified, n >>

Done(w) ==
    /\ workers[w].idle
    /\ workers[w].req # NULL
    /\ workers' = [workers EXCEPT ![w] = [idle |-> TRUE, req |-> NULL]]
    /\ LET r == workers[w].req IN
       wq' = [wq EXCEPT !.processing = @ \ {r},
                        !.queue = IF r \in wq.dirty THEN Append(@, r) ELSE @]
    /\ UNCHANGED << K8s, Aws, modified, n >>

-----------------------------------------------------------------------------
policyComplete ==
    /\ policy.st # NULL
    /\ policy.stmt = irsa.stmt
    /\ policy.awsPolicyArn # NULL

roleComplete ==
    /\ role.st # NULL
    /\ role.roleArn # NULL
    /\ role.policyArn # NULL
    /\ role.policiesAttached

(* A worker takes its key and will give it back before the step ends: that *)
(* is what On supplies, so no action below can forget to.                  *)
On(w, r) ==
    /\ workers[w].req = r
    /\ ~workers[w].idle
    /\ workers' = [workers EXCEPT ![w].idle = TRUE]
    /\ UNCHANGED << wq, n >>

Irsa(w) ==
    /\ On(w, iReq)
    /\ UNCHANGED Aws
    /\ IF policy.st = NULL
       THEN /\ policy' = [policy EXCEPT !.st = "pending", !.stmt = irsa.stmt]
            /\ Enqueue(<<pReq, iReq>>)
            /\ UNCHANGED << irsa, role, sa >>
       ELSE IF policy.stmt # irsa.stmt
       THEN /\ policy' = [policy EXCEPT !.stmt = irsa.stmt]
            /\ Enqueue(<<pReq, iReq>>)
            /\ UNCHANGED << irsa, role, sa >>
       ELSE IF role.st = NULL
       THEN /\ role' = [role EXCEPT !.st = "pending"]
            /\ Enqueue(<<rReq, iReq>>)
            /\ UNCHANGED << irsa, policy, sa >>
       ELSE IF ~(policyComplete /\ roleComplete)
       THEN UNCHANGED << K8s, modified >>   \* the dependency will re-queue this one
       ELSE IF sa.st = NULL
       THEN /\ sa' = [st |-> "pending", roleArn |-> role.roleArn]
            /\ Enqueue(<<saReq, iReq>>)
            /\ UNCHANGED << irsa, policy, role >>
       ELSE IF irsa.st # "ok"
       THEN /\ irsa' = [irsa EXCEPT !.st = "ok"]
            /\ UNCHANGED << policy, role, sa, modified >>
       ELSE UNCHANGED << K8s, modified >>

Policy(w) ==
    /\ On(w, pReq)
    /\ UNCHANGED << irsa, role, sa, awsRole >>
    /\ IF policy.st = NULL
       THEN UNCHANGED << policy, awsPolicy, modified >>
       ELSE IF awsPolicy.arn = NULL \/ awsPolicy.stmt # policy.stmt
       THEN /\ awsPolicy' = [arn |-> PA, stmt |-> policy.stmt]
            /\ Enqueue(<<pReq>>)
            /\ UNCHANGED policy
       ELSE IF policy.awsPolicyArn # awsPolicy.arn
       THEN /\ policy' = [policy EXCEPT !.awsPolicyArn = awsPolicy.arn]
            /\ Enqueue(<<pReq, rReq, iReq>>)
            /\ UNCHANGED awsPolicy
       ELSE UNCHANGED << policy, awsPolicy, modified >>

Role(w) ==
    /\ On(w, rReq)
    /\ UNCHANGED << irsa, policy, sa, awsPolicy >>
    /\ IF role.st = NULL
       THEN UNCHANGED << role, awsRole, modified >>
       ELSE IF awsRole.arn = NULL
       THEN /\ awsRole' = [arn |-> RA, attachedPolicy |-> NULL]
            /\ Enqueue(<<rReq>>)
            /\ UNCHANGED role
       ELSE IF role.roleArn # awsRole.arn
       THEN /\ role' = [role EXCEPT !.roleArn = awsRole.arn]
            /\ Enqueue(<<rReq, iReq>>)
            /\ UNCHANGED awsRole
       ELSE IF policy.awsPolicyArn = NULL
       THEN UNCHANGED << role, awsRole, modified >>   \* the policy's write will re-queue this one
       ELSE IF role.policyArn # policy.awsPolicyArn
       THEN /\ role' = [role EXCEPT !.policyArn = policy.awsPolicyArn]
            /\ Enqueue(<<rReq>>)
            /\ UNCHANGED awsRole
       ELSE IF awsRole.attachedPolicy # role.policyArn
       THEN /\ awsRole' = [awsRole EXCEPT !.attachedPolicy = role.policyArn]
            /\ Enqueue(<<rReq>>)
            /\ UNCHANGED role
       ELSE IF ~role.policiesAttached
       THEN /\ role' = [role EXCEPT !.policiesAttached = TRUE]
            /\ Enqueue(<<rReq, iReq>>)
            /\ UNCHANGED awsRole
       ELSE UNCHANGED << role, awsRole, modified >>

Sa(w) ==
    /\ On(w, saReq)
    /\ UNCHANGED << K8s, Aws, modified >>

-----------------------------------------------------------------------------
Matches ==
    /\ irsa.st = "ok"
    /\ policyComplete
    /\ roleComplete
    /\ sa.st # NULL
    /\ sa.roleArn = awsRole.arn
    /\ awsPolicy = [arn |-> PA, stmt |-> irsa.stmt]
    /\ awsRole = [arn |-> RA, attachedPolicy |-> PA]

Quiet ==
    /\ modified = <<>>
    /\ wq.queue = <<>>
    /\ wq.dirty = {}
    /\ \A w \in _workers : workers[w].req = NULL

Converged == Matches /\ Quiet

(* The process restarts: what it held is gone, everything is listed again. *)
Restart ==
    /\ n.crash < MaxCrash
    /\ n' = [n EXCEPT !.crash = @ + 1]
    /\ workers' = [w \in _workers |-> [idle |-> TRUE, req |-> NULL]]
    /\ wq' = [dirty |-> {}, processing |-> {}, queue |-> <<>>]
    /\ modified' = <<iReq, pReq, rReq>>
    /\ UNCHANGED << K8s, Aws >>

Drift ==
    /\ n.drift < MaxDrift
    /\ n' = [n EXCEPT !.drift = @ + 1]
    /\ \/ /\ awsRole.arn # NULL
          /\ awsRole' \in {[arn |-> NULL, attachedPolicy |-> NULL],
                            [arn |-> RA, attachedPolicy |-> NULL]}
          /\ UNCHANGED awsPolicy
       \/ /\ awsPolicy.arn # NULL
          /\ awsPolicy' \in {[arn |-> NULL, stmt |-> NULL], [arn |-> PA, stmt |-> "other"]}
          /\ UNCHANGED awsRole
    /\ UNCHANGED << K8s, wq, workers, modified >>

Edit ==
    /\ n.edit < MaxEdit
    /\ n' = [n EXCEPT !.edit = @ + 1]
    /\ irsa' = [irsa EXCEPT !.stmt = IF @ = "s1" THEN "s2" ELSE "s1"]
    /\ Enqueue(<<iReq>>)
    /\ UNCHANGED << policy, role, sa, Aws, wq, workers >>

(* Drift causes no event, so only this finds it. It waits until nothing    *)
(* else is to be done.                                                     *)
ResyncStep ==
    /\ Resync
    /\ Quiet
    /\ ~Matches
    /\ modified' = <<iReq, pReq, rReq>>
    /\ UNCHANGED << K8s, Aws, wq, workers, n >>

-----------------------------------------------------------------------------
Work ==
    \/ Add
    \/ ResyncStep
    \/ \E w \in _workers :
          \/ Get(w)
          \/ Done(w)
          \/ Irsa(w)
          \/ Policy(w)
          \/ Role(w)
          \/ Sa(w)

Next == Work \/ Restart \/ Drift \/ Edit

Fairness ==
    /\ WF_vars(Add)
    /\ WF_vars(ResyncStep)
    /\ \A w \in _workers :
          /\ WF_vars(Get(w))
          /\ WF_vars(Done(w))
          /\ WF_vars(Irsa(w) \/ Policy(w) \/ Role(w) \/ Sa(w))

Spec == Init /\ [][Next]_vars /\ Fairness

-----------------------------------------------------------------------------
TypeOk ==
    /\ \A w \in _workers : workers[w].req \in Reqs \cup {NULL}
    /\ wq.dirty \subseteq Reqs
    /\ wq.processing \subseteq Reqs
    /\ Range(wq.queue) \subseteq Reqs

NoConcurrentProcessingOfSameResource ==
    \A w, x \in _workers : (w # x /\ workers[w].req # NULL) => workers[w].req # workers[x].req

WorkqueueOK ==
    /\ Cardinality(Range(wq.queue)) = Len(wq.queue)
    /\ Range(wq.queue) \subseteq wq.dirty
    /\ wq.dirty \subseteq Range(wq.queue) \cup wq.processing
    /\ wq.processing = {workers[w].req : w \in {x \in _workers : workers[x].req # NULL}}

(* A worker that holds a key can always do something with it. The seed's   *)
(* workers cannot: they wait for another resource with the key in hand.    *)
NoWedge ==
    \A w \in _workers :
       workers[w].req # NULL =>
          ENABLED (Done(w) \/ Irsa(w) \/ Policy(w) \/ Role(w) \/ Sa(w))

SaOnlyWithRole == sa.st # NULL => sa.roleArn # NULL

Converges == <>[]Converged
=============================================================================
