---------------------------- MODULE LateCreate ----------------------------
(* When may "it is not there" be believed? One cloud object, create calls *)
(* that land late, and reads that lag.                                    *)
(*                                                                        *)
(* Before a create is sent, a mark with its time is written on our own    *)
(* resource. While a mark stands, an absent object may still appear. The  *)
(* mark is taken off only when a window has passed after which nothing    *)
(* that was sent under it can still land and reads are true again.        *)
EXTENDS Integers

CONSTANTS
    MaxC,     \* bound on create calls
    Mark1st,  \* FALSE: a create may be sent without a mark
    Fresh,    \* FALSE: a create may be sent under an old mark, so the window is too short
    Believe   \* TRUE: absence is believed only when no mark stands

VARIABLES
    cr,     \* our resource: "live", "deleting", "gone"
    mark,   \* "none", "fresh" (creates may be sent) or "old" (they may still land)
    fl,     \* create calls in flight
    truth,  \* the object exists
    vis,    \* what a read shows
    n       \* create calls so far

vars == << cr, mark, fl, truth, vis, n >>

Init ==
    /\ cr = "live"
    /\ mark = "none"
    /\ fl = 0
    /\ truth = FALSE
    /\ vis = FALSE
    /\ n = 0

--------------------------------------------------------------------------
Mark ==
    /\ cr = "live"
    /\ ~vis
    /\ mark # "fresh"
    /\ mark' = "fresh"
    /\ UNCHANGED << cr, fl, truth, vis, n >>

Create ==
    /\ cr = "live"
    /\ ~vis
    /\ n < MaxC
    /\ Mark1st => mark = "fresh" \/ (~Fresh /\ mark = "old")
    /\ n' = n + 1
    /\ fl' = fl + 1
    /\ UNCHANGED << cr, mark, truth, vis >>

(* Too old to send anything more under it. *)
Age ==
    /\ mark = "fresh"
    /\ mark' = "old"
    /\ UNCHANGED << cr, fl, truth, vis, n >>

(* The window has passed. If creates are sent under fresh marks only, it   *)
(* is long enough for all of them.                                         *)
Expire ==
    /\ mark = "old"
    /\ vis = truth
    /\ Fresh => fl = 0
    /\ mark' = "none"
    /\ UNCHANGED << cr, fl, truth, vis, n >>

Land ==
    /\ fl > 0
    /\ fl' = fl - 1
    /\ truth' = TRUE
    /\ UNCHANGED << cr, mark, vis, n >>

(* The call is lost. *)
Drop ==
    /\ fl > 0
    /\ fl' = fl - 1
    /\ UNCHANGED << cr, mark, truth, vis, n >>

See ==
    /\ vis # truth
    /\ vis' = truth
    /\ UNCHANGED << cr, mark, fl, truth, n >>

Delete ==
    /\ cr = "live"
    /\ cr' = "deleting"
    /\ UNCHANGED << mark, fl, truth, vis, n >>

DelCall ==
    /\ cr = "deleting"
    /\ vis
    /\ truth
    /\ truth' = FALSE
    /\ UNCHANGED << cr, mark, fl, vis, n >>

(* Our resource goes for good, and with it all knowledge of the object. *)
Gone ==
    /\ cr = "deleting"
    /\ ~vis
    /\ Believe => mark = "none"
    /\ cr' = "gone"
    /\ UNCHANGED << mark, fl, truth, vis, n >>

Next ==
    \/ Mark
    \/ Create
    \/ Age
    \/ Expire
    \/ Land
    \/ Drop
    \/ See
    \/ Delete
    \/ DelCall
    \/ Gone

Fair ==
    /\ WF_vars(Age)
    /\ WF_vars(Expire)
    /\ WF_vars(See)
    /\ WF_vars(DelCall)
    /\ WF_vars(Gone)
    /\ WF_vars(Land \/ Drop)

Spec == Init /\ [][Next]_vars /\ Fair

--------------------------------------------------------------------------
GoneIsClean == cr = "gone" => ~truth /\ fl = 0

Deletes == (cr = "deleting") ~> (cr = "gone")
==========================================================================
