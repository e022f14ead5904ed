---------------------------- MODULE IrsaOperator ----------------------------
(* Three controllers behind one work queue give a workload an AWS role:    *)
(* the seed as written, its defects kept.                                  *)
(*                                                                         *)
(* One custom resource (irsa) asks for a policy, a role and a service      *)
(* account. The policy and role controllers create their counterparts at   *)
(* AWS. All three share a set of workers and one client-go work queue. Out *)
(* of its scope: leader election, several custom resources, bad input.     *)
(*                                                                         *)
(* Defects:                                                                *)
(*  1. A worker whose resource waits for another one never gives the key   *)
(*     back. With one worker nobody is left to process the other: wedged.  *)
(*  2. Attaching at AWS and noting it on the role is one step, guarded by  *)
(*     "nothing attached". A crash between the two, or an attachment that  *)
(*     is there already, leaves no step: any number of workers wedge.      *)
(*  3. Spec assumes []TypeOk: what ought to be checked is taken as given.  *)
(*  4. TerminationIsTheLastAction reads as ([]ENABLED Termination) ~> ..., *)
(*     since [] binds tighter than ~>. It holds in the wedged model too.   *)
(*  5. WF_vars(Termination) says nothing: Termination changes no variable, *)
(*     so it is never a step that weak fairness could demand.              *)
(*  6. No update, deletion, drift, failed call, or second resource.        *)
EXTENDS TLC, Naturals, Sequences

CONSTANTS
    NULL,      \* nothing there
    _workers   \* the reconcile loops that run side by side

VARIABLES
    irsa,      \* the user's resource: state, service account name, policy statement, two ARNs
    policy,    \* the policy resource: state, statement, ARN of its AWS policy
    role,      \* the role resource: state, account name, two ARNs, whether the policy is attached
    sa,        \* the service account: state, name, ARN of the role
    awsPolicy, \* the policy at AWS: its ARN
    awsRole,   \* the role at AWS: its ARN and the ARN attached to it
    wq,        \* the work queue: dirty and processing sets, and the queue proper
    workers,   \* [_workers -> [idle, req]] each worker and the key it holds
    modified   \* keys that changed and that the watch has not delivered yet

vars == << irsa, policy, role, sa, awsPolicy, awsRole, wq, workers, modified >>

(* The four keys. *)
iReq == "irsa"
pReq == "policy"
rReq == "role"
saReq == "sa"

pendingSt == "pending"
valid_states == {NULL, pendingSt}

TypeOk ==
    /\ irsa.st \in valid_states
    /\ policy.st \in valid_states
    /\ role.st \in valid_states
    /\ sa.st \in valid_states
    /\ \A w \in DOMAIN workers : workers[w].req \in {NULL, iReq, pReq, rReq, saReq}
    /\ awsRole.arn \in {NULL, "roleARN"}
    /\ awsPolicy.arn \in {NULL, "policyARN"}

(* AWS starts empty: a policy or role left over from before is not tried.  *)
Init ==
    /\ irsa = [st        |-> NULL,
               saName    |-> "saName",
               stmt      |-> "statement",
               roleARN   |-> NULL,
               policyARN |-> NULL]
    /\ policy = [st           |-> NULL,
                 stmt         |-> NULL,
                 awsPolicyArn |-> NULL]
    /\ role = [st               |-> NULL,
               saName           |-> NULL,
               roleArn          |-> NULL,
               policyArn        |-> NULL,
               policiesAttached |-> FALSE]
    /\ sa = [st      |-> NULL,
             name    |-> NULL,
             roleArn |-> NULL]
    /\ awsPolicy = [arn |-> NULL]
    /\ awsRole = [arn |-> NULL, attachedPolicy |-> NULL]
    /\ modified = <<iReq>>
    /\ wq = [dirty |-> {}, processing |-> {}, queue |-> <<>>]
    /\ workers = [w \in _workers |-> [idle |-> TRUE, req |-> NULL]]

-----------------------------------------------------------------------------
(* The work queue of client-go: a key is dirty when it must be looked at,  *)
(* processing while a worker holds it, and in the queue iff dirty and not  *)
(* processing.                                                             *)

(* The watch will tell about these keys, in this order. Never bounded.     *)
Enqueue(r) == modified' = modified \o r

Add ==
    /\ modified # <<>>
    /\ modified' = Tail(modified)
    /\ LET e == Head(modified) IN
       IF e \in wq.dirty
       THEN UNCHANGED wq
       ELSE IF e \notin wq.processing
            THEN wq' = [wq EXCEPT !.dirty = wq.dirty \union {e},
                                  !.queue = Append(wq.queue, e)]
            ELSE wq' = [wq EXCEPT !.dirty = wq.dirty \union {e}]
    /\ UNCHANGED << irsa, policy, role, sa, awsPolicy, awsRole, workers >>

Get(w) ==
    /\ workers[w].idle
    /\ workers[w].req = NULL
    /\ wq.queue # <<>>
    /\ LET head == Head(wq.queue) IN
       /\ workers' = [workers EXCEPT ![w] = [idle |-> FALSE, req |-> head]]
       /\ wq' = [wq EXCEPT !.queue = Tail(wq.queue),
                           !.dirty = wq.dirty \ {head},
                           !.processing = wq.processing \union {head}]
    /\ UNCHANGED << awsPolicy, awsRole, irsa, modified, policy, role, sa >>

(* A key that became dirty while it was held goes back into the queue.     *)
Done(w) ==
    /\ workers[w].idle
    /\ workers[w].req # NULL
    /\ workers' = [workers EXCEPT ![w] = [idle |-> TRUE, req |-> NULL]]
    /\ LET r == workers[w].req IN
       IF r \in wq.dirty
       THEN wq' = [wq EXCEPT !.processing = wq.processing \ {r},
                             !.queue = Append(wq.queue, r)]
       ELSE wq' = [wq EXCEPT !.processing = wq.processing \ {r}]
    /\ UNCHANGED << awsPolicy, awsRole, irsa, modified, policy, role, sa >>

-----------------------------------------------------------------------------
(* When a resource has nothing more to do. *)
IrsaComplete ==
    /\ policy.st # NULL
    /\ role.st # NULL
    /\ sa.st # NULL

policyComplete ==
    /\ policy.st # NULL
    /\ policy.stmt # NULL
    /\ policy.awsPolicyArn # NULL

roleComplete ==
    /\ role.st # NULL
    /\ role.saName # NULL
    /\ role.roleArn # NULL
    /\ role.policyArn # NULL
    /\ role.policiesAttached

saComplete ==
    /\ sa.st # NULL
    /\ sa.name # NULL
    /\ sa.roleArn # NULL

-----------------------------------------------------------------------------
(* What a worker does with its key. Some of these give the key back (idle  *)
(* becomes TRUE, Done follows), others keep it and go on: defect 1.        *)
Holds(w, key) ==
    /\ workers[w].idle = FALSE
    /\ workers[w].req = key

GiveBack(w) == workers' = [workers EXCEPT ![w].idle = TRUE]

CreatePolicy(w) ==
    /\ Holds(w, iReq)
    /\ policy.st = NULL
    /\ policy' = [policy EXCEPT !.st = "pending", !.stmt = irsa.stmt]
    /\ GiveBack(w)
    /\ Enqueue(<<pReq, iReq>>)
    /\ UNCHANGED << awsPolicy, awsRole, irsa, role, sa, wq >>

CreateRole(w) ==
    /\ Holds(w, iReq)
    /\ role.st = NULL
    /\ role' = [role EXCEPT !.st = "pending", !.saName = irsa.saName]
    /\ GiveBack(w)
    /\ Enqueue(<<rReq, iReq>>)
    /\ UNCHANGED << awsPolicy, awsRole, irsa, policy, sa, wq >>

(* Create it at AWS, or note the ARN of what is there.                     *)
PolicyHasNoARN(w) ==
    /\ Holds(w, pReq)
    /\ policy.awsPolicyArn = NULL
    /\ IF awsPolicy.arn = NULL
       THEN /\ awsPolicy' = [awsPolicy EXCEPT !.arn = "policyARN"]
            /\ UNCHANGED policy
       ELSE /\ policy' = [policy EXCEPT !.awsPolicyArn = awsPolicy.arn]
            /\ UNCHANGED awsPolicy
    /\ Enqueue(<<pReq>>)
    /\ UNCHANGED << awsRole, irsa, role, sa, workers, wq >>

RoleHasNoRoleARN(w) ==
    /\ Holds(w, rReq)
    /\ role.roleArn = NULL
    /\ IF awsRole.arn = NULL
       THEN /\ awsRole' = [awsRole EXCEPT !.arn = "roleARN"]
            /\ UNCHANGED role
       ELSE /\ role' = [role EXCEPT !.roleArn = awsRole.arn]
            /\ UNCHANGED awsRole
    /\ Enqueue(<<rReq>>)
    /\ UNCHANGED << awsPolicy, irsa, policy, sa, workers, wq >>

(* Until the policy has its ARN this waits, with the worker in its hand.   *)
RoleHasNoPolicyARN(w) ==
    /\ Holds(w, rReq)
    /\ role.policyArn = NULL
    /\ policy.awsPolicyArn # NULL
    /\ role' = [role EXCEPT !.policyArn = policy.awsPolicyArn]
    /\ Enqueue(<<rReq>>)
    /\ UNCHANGED << awsPolicy, awsRole, irsa, policy, sa, workers, wq >>

(* Defect 2: two effects in one step, and no way on if something is        *)
(* attached while the flag is still FALSE.                                 *)
RoleHasPolicyARN(w) ==
    /\ Holds(w, rReq)
    /\ role.policyArn # NULL
    /\ role.roleArn # NULL
    /\ ~role.policiesAttached
    /\ awsRole.attachedPolicy = NULL
    /\ awsRole' = [awsRole EXCEPT !.attachedPolicy = role.policyArn]
    /\ role' = [role EXCEPT !.policiesAttached = TRUE]
    /\ Enqueue(<<rReq>>)
    /\ UNCHANGED << awsPolicy, irsa, policy, sa, workers, wq >>

(* Waits for both others, with the worker in its hand.                     *)
CreateServiceAccount(w) ==
    /\ Holds(w, iReq)
    /\ sa.st = NULL
    /\ roleComplete
    /\ policyComplete
    /\ sa' = [sa EXCEPT !.st = "pending", !.name = irsa.saName, !.roleArn = role.roleArn]
    /\ Enqueue(<<saReq, iReq>>)
    /\ UNCHANGED << awsPolicy, awsRole, irsa, policy, role, workers, wq >>

(* Nothing to do: give the key back. *)
Swallow(w) ==
    /\ GiveBack(w)
    /\ UNCHANGED << awsPolicy, awsRole, irsa, policy, role, sa, wq, modified >>

IrsaAllDone(w)   == Holds(w, iReq)  /\ IrsaComplete   /\ Swallow(w)
PolicyAllDone(w) == Holds(w, pReq)  /\ policyComplete /\ Swallow(w)
RoleAllDone(w)   == Holds(w, rReq)  /\ roleComplete   /\ Swallow(w)
SaAllDone(w)     == Holds(w, saReq) /\ saComplete     /\ Swallow(w)

(* Everything is there and nobody works: rest here. *)
Termination ==
    /\ \A w \in DOMAIN workers : workers[w].idle = TRUE /\ workers[w].req = NULL
    /\ IrsaComplete
    /\ roleComplete
    /\ policyComplete
    /\ saComplete
    /\ awsPolicy.arn # NULL
    /\ awsRole.arn # NULL
    /\ awsRole.attachedPolicy # NULL
    /\ UNCHANGED vars

-----------------------------------------------------------------------------
Actions ==
    \/ Add
    \/ \E w \in _workers :
          \/ Get(w)
          \/ Done(w)
          \/ CreatePolicy(w)
          \/ CreateRole(w)
          \/ CreateServiceAccount(w)
          \/ PolicyHasNoARN(w)
          \/ RoleHasNoRoleARN(w)
          \/ RoleHasNoPolicyARN(w)
          \/ RoleHasPolicyARN(w)
          \/ IrsaAllDone(w)
          \/ PolicyAllDone(w)
          \/ RoleAllDone(w)
          \/ SaAllDone(w)

Fairness ==
    /\ WF_vars(Add)
    /\ WF_vars(Termination)   \* defect 5
    /\ \A w \in _workers :
          /\ WF_vars(Get(w))
          /\ WF_vars(Done(w))
          /\ WF_vars(CreatePolicy(w))
          /\ WF_vars(CreateRole(w))
          /\ WF_vars(CreateServiceAccount(w))
          /\ WF_vars(PolicyHasNoARN(w))
          /\ WF_vars(RoleHasNoRoleARN(w))
          /\ WF_vars(RoleHasNoPolicyARN(w))
          /\ WF_vars(RoleHasPolicyARN(w))
          /\ WF_vars(IrsaAllDone(w))
          /\ WF_vars(PolicyAllDone(w))
          /\ WF_vars(RoleAllDone(w))
          /\ WF_vars(SaAllDone(w))

Next == Actions \/ Termination

Spec ==
    /\ Init
    /\ [][Next]_vars
    /\ []TypeOk   \* defect 3
    /\ Fairness

-----------------------------------------------------------------------------
NoConcurrentProcessingOfSameResource ==
    [](\A w \in DOMAIN workers :
          \/ workers[w].idle
          \/ workers[w].req \notin {workers[x].req : x \in DOMAIN workers \ {w}})

(* Defect 4. *)
TerminationIsTheLastAction ==
    [](ENABLED Termination) ~> (ENABLED Termination /\ ~ENABLED Actions)

THEOREM Spec => NoConcurrentProcessingOfSameResource
THEOREM Spec => TerminationIsTheLastAction
=============================================================================
