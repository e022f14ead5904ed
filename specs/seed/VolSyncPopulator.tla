-------------------------- MODULE VolSyncPopulator --------------------------
(* From a destination to its first snapshot: the seed as written, its      *)
(* defects kept.                                                           *)
(*                                                                         *)
(* A user creates one replication destination (RD). Its controller takes   *)
(* one snapshot (VS) and notes it as the latest image (LI). Then both rest.*)
(*                                                                         *)
(* Defects:                                                                *)
(*  1. It ends at the snapshot. No claim, no volume and no populator is in *)
(*     it, although the populator is what it was written for.              *)
(*  2. There is only one snapshot, so the latest image never moves on      *)
(*     while a claim is being filled: the race in question cannot occur.   *)
(*  3. With a single id the controller finds none left and waits for ever: *)
(*     a deadlock, and Termination fails.                                  *)
(*  4. Taking the snapshot and noting it as latest is one step. In a       *)
(*     cluster these are two writes with a crash between them.             *)
(*  5. An id returns to the free ones when its object goes (the author's   *)
(*     later version deletes objects). And the rule that a snapshot is     *)
(*     there only to be the latest image is what a claim that is being     *)
(*     filled breaks.                                                      *)
EXTENDS FiniteSets, TLC

CONSTANTS
    OIDs,  \* the ids that objects may get
    nil    \* no id

ObjKinds == {"RD", "VS", "PV", "PVC"}

VARIABLES
    Objs,  \* the objects that exist: records with at least oid and k (the kind)
    pc     \* [ProcSet -> label] where each process stands

vars == << Objs, pc >>

ProcSet == {"user"} \cup {"RDC"}

FreeOIDs == OIDs \ {o.oid : o \in Objs}

(* A record without fields; nothing uses it. *)
empty == [x \in {} |-> {}]

Init ==
    /\ Objs = {}
    /\ pc = [self \in ProcSet |-> CASE self \in {"user"} -> "UStart"
                                    [] self \in {"RDC"}  -> "RDBegin"]

-----------------------------------------------------------------------------
UStart(self) ==
    /\ pc[self] = "UStart"
    /\ \E i \in FreeOIDs :
          Objs' = Objs \cup {[oid |-> i, k |-> "RD", LI |-> nil]}
    /\ pc' = [pc EXCEPT ![self] = "Done"]

User(self) == UStart(self)

(* Defect 4 is the union of two new objects in one step; defect 3 is that  *)
(* no free id means no step. The seed also prints Objs' here, left out.    *)
RDBegin(self) ==
    /\ pc[self] = "RDBegin"
    /\ \E rd \in {o \in Objs : o.k = "RD"} :
          \E i \in FreeOIDs :
             Objs' = (Objs \ {rd}) \cup {[oid |-> i, k |-> "VS"], [rd EXCEPT !.LI = i]}
    /\ pc' = [pc EXCEPT ![self] = "Done"]

RDController(self) == RDBegin(self)

(* Both processes are through: rest here, so that TLC sees no deadlock. *)
Terminating ==
    /\ \A self \in ProcSet : pc[self] = "Done"
    /\ UNCHANGED vars

Next ==
    \/ \E self \in {"user"} : User(self)
    \/ \E self \in {"RDC"} : RDController(self)
    \/ Terminating

Spec ==
    /\ Init
    /\ [][Next]_vars
    /\ WF_vars(Next)

-----------------------------------------------------------------------------
TypeOk ==
    \A o \in Objs :
       /\ \A f \in {"k", "oid"} : f \in DOMAIN o
       /\ o.k \in ObjKinds
       /\ o.oid \in OIDs
       /\ \A x \in Objs : x = o \/ x.oid # o.oid

Termination == <>(\A self \in ProcSet : pc[self] = "Done")
=============================================================================
