/* Two-phase install of epochs of route tables, with alerts that come in between and hubs that are
 * lost and come back.
 *
 * Three hubs in a triangle, each in a daemon of its own; network management; virtual time in ticks.
 * Written down in docs/semantics.md rules 19 and 21 and docs/protocol.md, "Epochs of route tables"
 * [E1..E10]: the marks in brackets stand there behind the sentences. Each `#ifdef` is a mutation of
 * the protocol, beside the line that is right; tests/models/test_models.py has each of them refused.
 *
 * Tables are the set of links that they lead around. Left out: what tables contain, damage of
 * tables, plans that fail the check, tables loaded from outside.
 */

#define HUBS 3
#define ALL 7
#ifndef CHANGES
#define CHANGES 2 /* links that go down or come up */
#endif
#ifndef LOSSES
#define LOSSES 2
#endif
#ifndef RETURNS
#define RETURNS 1 /* lost places that are taken again */
#endif

/* Ticks; detect >= latency, install >= 3 x latency. */
#define LATENCY 2 /* of a message of management */
#define DETECT 3
#define PLAN 2
#define INSTALL 7

/* Link l joins hubs l and l + 1. */
#define LEFT(l) (l)
#define RIGHT(l) (((l) + 1) % HUBS)
#define BIT(n) (1 << (n))

/* --- The machine. */
byte cut;             /* links that a fault holds down */
byte present = ALL;   /* hubs that are not lost */
byte changes = CHANGES, losses = LOSSES, returns = RETURNS;
#define IS_UP(l) (!(cut & BIT(l)) && (present & BIT(LEFT(l))) && (present & BIT(RIGHT(l))))

typedef Hub {
  byte told_down;     /* its links, as its alerts have said */
  byte epoch, tables; /* in effect */
  byte prepared_epoch, prepared;
  /* On their way: ticks until they arrive and one more, 0: none. */
  byte prepare, commit, answer;
  byte prepare_epoch, prepare_tables, commit_epoch, answer_epoch;
  byte stale;         /* answer of the hub that was here before */
};
Hub hub[HUBS];
/* Alerts on their way, by the ticks until they arrive: links that went down, and up, and those of
   which the last alert of that tick says down. */
byte down_in[LATENCY + 1], up_in[LATENCY + 1], last_down_in[LATENCY + 1];

/* --- Network management. */
#define IDLE 0
#define DETECTING 1
#define PLANNING 2
#define PREPARING 3
#define COMMITTING 4
byte phase;
byte wait;            /* ticks until the phase is over */
byte since_planned;
byte down;            /* links, as alerts said */
byte news, news_down; /* links of alerts that no plan has answered yet, and the last word on each */
byte epoch, tables, planned, unanswered;
byte installed_epoch; /* in effect at every hub; `tables` likewise */
byte front;           /* ticks until planning may begin for the first of the news */

byte h, l;

/* An end tells what it has not told yet. [E1] */
inline tell(who, link) {
  if
  :: (present & BIT(who)) && !IS_UP(link) && !(hub[who].told_down & BIT(link)) ->
       hub[who].told_down = hub[who].told_down | BIT(link);
       down_in[LATENCY] = down_in[LATENCY] | BIT(link);
       last_down_in[LATENCY] = last_down_in[LATENCY] | BIT(link)
  :: (present & BIT(who)) && IS_UP(link) && (hub[who].told_down & BIT(link)) ->
       hub[who].told_down = hub[who].told_down & ~BIT(link);
       up_in[LATENCY] = up_in[LATENCY] | BIT(link);
       last_down_in[LATENCY] = last_down_in[LATENCY] & ~BIT(link)
  :: else
  fi
}

inline tell_all() {
  l = 0;
  do
  :: l < HUBS -> tell(LEFT(l), l); tell(RIGHT(l), l); l++
  :: else -> break
  od;
  l = 0
}

inline send_prepare(who) {
  unanswered = unanswered | BIT(who);
  hub[who].prepare = LATENCY + 1;
  hub[who].prepare_epoch = epoch;
  hub[who].prepare_tables = planned
}

/* Takes effect at one time everywhere: planning end + install, or later if answers came late. [E4] */
inline decide_commit() {
  if
  :: since_planned + LATENCY > INSTALL -> wait = LATENCY
  :: else -> wait = INSTALL - since_planned
  fi;
  h = 0;
  do
  :: h < HUBS ->
       if
       :: present & BIT(h) ->
            assert(hub[h].prepared_epoch == epoch); /* each of them has answered [E3] */
            hub[h].commit_epoch = epoch;
#ifdef COMMIT_AS_IT_ARRIVES
            hub[h].commit = LATENCY + h + 1 /* whenever it gets there */
#else
            hub[h].commit = wait + 1
#endif
       :: else
       fi;
       h++
  :: else -> break
  od;
  h = 0;
  phase = COMMITTING
}

#ifdef COMMIT_WITHOUT_ALL
#define ANSWERED (unanswered != present)
#else
#define ANSWERED (unanswered == 0) /* [E3] */
#endif

inline on_answer(who, of_epoch) {
  if
  :: phase == PREPARING && of_epoch == epoch && (unanswered & BIT(who)) ->
       unanswered = unanswered & ~BIT(who);
       if
       :: ANSWERED -> decide_commit()
       :: else
       fi
  :: else
  fi
}

inline lose(who) {
  losses--;
  present = present & ~BIT(who);
  if
  :: hub[who].answer > 0 && hub[who].answer_epoch == epoch -> hub[who].stale = hub[who].answer
  :: else
  fi;
  /* What is on its way to it reaches nobody; what it had sent to management arrives. [E7] */
  hub[who].prepare = 0; hub[who].commit = 0; hub[who].answer = 0;
  hub[who].prepare_epoch = 0; hub[who].prepare_tables = 0; hub[who].commit_epoch = 0;
  hub[who].answer_epoch = 0; hub[who].prepared_epoch = 0; hub[who].prepared = 0;
  hub[who].told_down = 0; hub[who].epoch = 0; hub[who].tables = 0;
#ifndef WAIT_FOR_THE_LOST
  if /* management waits for it no longer [E6] */
  :: unanswered & BIT(who) ->
       unanswered = unanswered & ~BIT(who);
       if
       :: unanswered == 0 -> decide_commit()
       :: else
       fi
  :: else
  fi;
#endif
  tell_all() /* neighbours raise alerts */
}

/* Its tables and epoch are those in effect; what is being installed goes to it, too. [E8], [E9] */
inline rejoin(who) {
  returns--;
  present = present | BIT(who);
  hub[who].epoch = installed_epoch;
  hub[who].tables = tables;
  hub[who].told_down = ALL & ~BIT((who + 1) % HUBS); /* by the others, when it was lost */
  if
#ifndef NO_PREPARE_FOR_THE_RETURNED
  :: phase == PREPARING -> send_prepare(who)
#endif
  :: phase == COMMITTING ->
#ifdef RETURNED_GET_WHAT_IS_TO_COME
       hub[who].epoch = epoch;
       hub[who].tables = planned
#else
       hub[who].prepared_epoch = epoch;
       hub[who].prepared = planned;
       hub[who].commit_epoch = epoch;
       hub[who].commit = wait + 1
#endif
  :: else
  fi;
  tell_all()
}

/* Hubs hear of epochs. */
inline hub_hears(who) {
  if
  :: hub[who].prepare == 1 -> /* verified, kept beside those in effect, answered [E2] */
       hub[who].prepared_epoch = hub[who].prepare_epoch;
       hub[who].prepared = hub[who].prepare_tables;
       hub[who].answer = LATENCY + 1;
       hub[who].answer_epoch = hub[who].prepare_epoch;
#ifdef INSTALL_WHEN_PREPARED
       hub[who].epoch = hub[who].prepare_epoch;
       hub[who].tables = hub[who].prepare_tables;
#endif
       hub[who].prepare_epoch = 0; hub[who].prepare_tables = 0
  :: else
  fi;
  if
  :: hub[who].commit == 1 ->
       /* A commit always finds the tables that it is of. [E5] */
       assert(hub[who].commit_epoch == hub[who].prepared_epoch);
       assert(hub[who].commit_epoch > hub[who].epoch);
       hub[who].epoch = hub[who].prepared_epoch;
       hub[who].tables = hub[who].prepared;
       hub[who].commit_epoch = 0
  :: else
  fi
}

inline manager_hears(who) {
  if
  :: hub[who].stale == 1 ->
#ifdef OLD_ANSWERS_COUNT
       on_answer(who, epoch);
#endif
       skip
  :: else
  fi;
  if
  :: hub[who].answer == 1 -> on_answer(who, hub[who].answer_epoch); hub[who].answer_epoch = 0
  :: else
  fi
}

inline start_detecting() {
  phase = DETECTING;
  wait = front
}

/* Alerts of one end count in the order in which it raised them. One plan is in flight; what comes
   meanwhile waits. [E1] */
inline manager_alerts() {
  if
  :: (down_in[0] | up_in[0]) != 0 ->
#ifdef ALERTS_LOST_WHILE_BUSY
       if
       :: phase > DETECTING -> skip
       :: else ->
#endif
       if
       :: news == 0 -> front = DETECT - LATENCY
       :: else
       fi;
       news = news | down_in[0] | up_in[0];
#ifdef DOWN_BEFORE_UP
       news_down = (news_down | down_in[0]) & ~up_in[0];
#else
       news_down = (news_down & ~up_in[0]) | last_down_in[0];
#endif
       if
       :: phase == IDLE -> start_detecting()
       :: else
       fi
#ifdef ALERTS_LOST_WHILE_BUSY
       fi
#endif
  :: else
  fi;
  down_in[0] = down_in[1]; down_in[1] = down_in[2]; down_in[2] = 0;
  last_down_in[0] = last_down_in[1]; last_down_in[1] = last_down_in[2]; last_down_in[2] = 0;
  up_in[0] = up_in[1]; up_in[1] = up_in[2]; up_in[2] = 0
}

inline manager_acts() {
  if
  :: phase != IDLE && phase != PREPARING && wait == 0 ->
       if
       :: phase == DETECTING -> /* with all alerts that have arrived [E1] */
            down = (down & ~news) | (news_down & news);
            planned = down;
            news = 0; news_down = 0; front = 0;
            phase = PLANNING; wait = PLAN
       :: phase == PLANNING ->
            epoch++;
            since_planned = 0;
            phase = PREPARING;
            h = 0;
            do
            :: h < HUBS ->
                 if
                 :: present & BIT(h) -> send_prepare(h)
                 :: else
                 fi;
                 h++
            :: else -> break
            od;
            h = 0
       :: phase == COMMITTING ->
            installed_epoch = epoch;
            tables = planned;
            since_planned = 0;
            planned = 0;
            if
            :: news != 0 -> start_detecting() /* [E10] */
            :: else -> phase = IDLE
            fi
       fi
  :: else
  fi
}

inline nearer(ticks) {
  if
  :: ticks > 0 -> ticks--
  :: else
  fi
}

inline tick() {
  h = 0;
  do
  :: h < HUBS ->
       nearer(hub[h].prepare); nearer(hub[h].commit);
       nearer(hub[h].answer); nearer(hub[h].stale);
       h++
  :: else -> break
  od;
  h = 0;
  nearer(wait); nearer(front);
  if
  :: (phase == PREPARING || phase == COMMITTING) && since_planned < INSTALL -> since_planned++
  :: else
  fi
}

/* At the end of every tick all hubs that are there have the same epoch, and the same tables. [E4] */
inline check() {
  h = 0;
  do
  :: h < HUBS ->
       if
       :: present & BIT(h) ->
            assert(hub[h].epoch == installed_epoch);
            assert(hub[h].tables == tables)
       :: else
       fi;
       h++
  :: else -> break
  od;
  h = 0
}

active proctype Time() {
  do
  :: /* What happens at the start of a tick: losses and returns are of the end of a window. */
     do
     :: atomic { losses > 0 && (present & 1) && present != 1 -> d_step { lose(0); skip } }
     :: atomic { losses > 0 && (present & 2) && present != 2 -> d_step { lose(1); skip } }
     :: atomic { losses > 0 && (present & 4) && present != 4 -> d_step { lose(2); skip } }
     :: atomic { returns > 0 && !(present & 1) -> d_step { rejoin(0); skip } }
     :: atomic { returns > 0 && !(present & 2) -> d_step { rejoin(1); skip } }
     :: atomic { returns > 0 && !(present & 4) -> d_step { rejoin(2); skip } }
     :: atomic { changes > 0 -> d_step { changes--; cut = cut ^ 1; tell_all(); skip } }
     :: atomic { changes > 0 -> d_step { changes--; cut = cut ^ 2; tell_all(); skip } }
     :: break
     od;
     skip;
     d_step {
       hub_hears(0); hub_hears(1); hub_hears(2);
       manager_alerts();
       manager_hears(0); manager_hears(1); manager_hears(2);
       manager_acts();
       check();
       tick() }
  od
}

#define THERE(n) ((present & BIT(n)) != 0)
#define RIGHT_LINK(n) \
  (!(THERE(LEFT(n)) && THERE(RIGHT(n))) || ((tables & BIT(n)) == (cut & BIT(n))))
/* No route leads through a hub that is lost: one of its two links at least is known to be down. */
#define AROUND(n) \
  (THERE(n) || !THERE((n + 1) % HUBS) || !THERE((n + 2) % HUBS) || \
   (tables & (BIT(n) | BIT((n + 2) % HUBS))) != 0)
#define SETTLED (phase == IDLE && RIGHT_LINK(0) && RIGHT_LINK(1) && RIGHT_LINK(2) && \
                 AROUND(0) && AROUND(1) && AROUND(2))

/* When nothing more fails, in the end the tables in effect lead around all that is down, and
   nothing else, whatever was lost in between: no install waits for ever. */
ltl tables_become_right { <> [] SETTLED }
/* Epochs only grow, one at a time. */
ltl one_plan_at_a_time { [] (epoch == installed_epoch || epoch == installed_epoch + 1) }
