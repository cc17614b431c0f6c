/* Windows of virtual time while daemons are lost, and others take their places, under a controller
 * that may die and be started again.
 *
 * Three daemons, the controller, batches between daemons. Written down in docs/protocol.md,
 * "Windows" [W1..W4], "Lost daemons" [L1..L7] and "A place taken again" [R1..R5]: the marks in
 * brackets stand there behind the sentences. Each `#ifdef` is a mutation of the protocol, beside the
 * line that is right; tests/models/test_models.py has each of them refused.
 *
 * Sessions are what sessions.pml shows them to be: messages arrive once and in order. A window is one
 * unit of virtual time, and a batch arrives with the window after. Who runs again, and who sends to
 * whom, is left open: every choice is tried. A daemon that dies is one that does nothing more; one
 * that was frozen goes on. Left out: programs, commands, network management, results.
 */

#ifndef WINDOWS
#define WINDOWS 3
#endif
#ifndef LOSSES
#define LOSSES 2
#endif
#ifndef RETURNS
#define RETURNS 1
#endif
#ifndef CRASHES
#define CRASHES 0
#endif
#define N 3
#define ALL 7
#define NEVER 7
#define UNANSWERED 7
#define BIT(n) (1 << (n))
#define AT(p, q) ((p) * N + (q))
/* Pairs of daemons that share links. */
#ifdef CHAIN
#define SHARE(p, q) ((p) != (q) && (p) + (q) != 2)
#else
#define SHARE(p, q) ((p) != (q))
#endif

/* Batches of a stream as the set of windows that they are of: the n-th batch is of its n-th window. */
#define COUNT(m) (((m) & 1) + (((m) >> 1) & 1) + (((m) >> 2) & 1))
#define FIRST(m, n) \
  ((n) == 0 -> 0 : ((n) >= COUNT(m) -> (m) : ((n) == 1 -> ((m) & (8 - (m))) : 3)))
#define LOWEST(m) ((m) & 1 -> 0 : ((m) & 2 -> 1 : ((m) & 4 -> 2 : NEVER)))
#define LESS(a, b) ((a) < (b) -> (a) : (b))
#define MORE(a, b) ((a) > (b) -> (a) : (b))

/* --- Daemons, by place. */
typedef Daemon {
  bool configured, ready, granted;
  byte end, back;      /* of its grant: the window's end, who is there again */
  byte need[N];        /* of its grant: the batches that must be in [W2] */
  byte gone;           /* peers that it was told are lost */
  byte streams;        /* peers that it has a stream with, or awaits one from */
  byte taken[N];       /* batches, by sender */
  byte sent[N];        /* batches, by receiver: the set of their windows */
  byte accepted[N];    /* what it said of lost ones [L3] */
  byte attempt;
};
Daemon d[N];
byte now[N];             /* virtual time of each */
bool stray[N];           /* the daemon that was there before still runs */
byte incarnation[N];
byte bound[N * N];       /* whose stream it is that one has of another */

#define GRANT 1
#define PEER_LOST 2
#define PEER_BACK 3
#define CONFIGURE 4
#define DROP 5
/* What a daemon says is heard at once: one whose words are lost with it is one that is declared lost
 * first and says them, to nobody, afterwards. */
chan to[N] = [6] of { byte, byte, byte };

/* --- The controller. */
byte time;               /* end of the last window */
byte running, wakes, lost;
byte needed[N * N];      /* (receiver, sender): batches that the next grant names */
byte announced[N * N];   /* (sender, receiver): set of windows, as reported */
byte confirmed[N * N];   /* (sender, receiver): batches that were surely taken in */
byte named[N * N];       /* (receiver, sender): batches that the last grant named */
byte losing;             /* declared, not journalled */
byte silent_from[N];     /* of one that is being lost: the window that it did not report, or would
                            have run next [L2] */
byte stopped[N];         /* when it was lost */
byte awaited[N];         /* by lost one: who has not said what of it arrived */
byte said[N * N];        /* (lost one, survivor): the answer */
byte losses = LOSSES, returns = RETURNS, crashes = CRASHES;
byte here;               /* daemons that wait in the place of a lost one */
byte journalled;         /* losses, until the place is taken again */
byte joining = N, attempts, attempt, join_awaited;
bool join_configured, join_ready;
byte back[N];            /* who is there again, for each one's next grant [R4] */
byte reported[N];        /* end of the last window that each has reported */
bool over;

byte i, j, k, l, cut, took;
byte kind, a, b;

#define BUSY (running != 0 || awaited[0] != 0 || awaited[1] != 0 || awaited[2] != 0)
#define LIVING (ALL & ~lost)

inline clear(c) {
  do
  :: nempty(c) -> c?_, _, _
  :: empty(c) -> break
  od;
  skip
}

inline start_anew(p) {
  d[p].configured = false; d[p].ready = false; d[p].granted = false;
  d[p].end = 0; d[p].back = 0; d[p].gone = 0; d[p].streams = 0; d[p].attempt = 0;
  k = 0;
  do
  :: k < N ->
       d[p].need[k] = 0; d[p].taken[k] = 0; d[p].sent[k] = 0; d[p].accepted[k] = 0;
       bound[AT(p, k)] = 0;
       k++
  :: else -> break
  od;
  k = 0
}

/* What daemon p took in of those that q sent. */
#define TOOK(p, q) FIRST(d[q].sent[p], d[p].taken[q])

/* --- What the controller hears. */

inline on_report(p, whom, again) {
  k = 0;
  do
  :: k < N ->
       if
       :: named[AT(p, k)] > confirmed[AT(k, p)] -> confirmed[AT(k, p)] = named[AT(p, k)]
       :: else
       fi;
       named[AT(p, k)] = 0;
       if
       :: whom & BIT(k) ->
            announced[AT(p, k)] = announced[AT(p, k)] | BIT(time - 1);
            if
            :: !(lost & BIT(k)) -> /* [W3] */
#ifndef GRANT_WITHOUT_BATCHES
                 needed[AT(k, p)] = COUNT(announced[AT(p, k)]);
#endif
                 wakes = wakes | BIT(k)
            :: else
            fi
       :: else
       fi;
       k++
  :: else -> break
  od;
  k = 0;
  if
  :: again == 1 -> wakes = wakes | BIT(p)
  :: else
  fi;
  reported[p] = time;
  running = running & ~BIT(p)
}

inline on_lost_reply(p, q, number) {
  if
  :: (losing & BIT(q)) && (awaited[q] & BIT(p)) ->
       awaited[q] = awaited[q] & ~BIT(p);
       said[AT(q, p)] = number
  :: else
  fi
}

inline configure() {
  join_configured = true;
  k = 0; j = 0;
  do
  :: k < N ->
       if
       :: SHARE(joining, k) && !(lost & BIT(k)) -> j = j | BIT(k)
       :: else
       fi;
       k++
  :: else -> break
  od;
  k = 0;
  to[joining]!CONFIGURE, attempt, j;
  j = 0
}

inline on_back_reply(p, number) {
  if
  :: joining != N && number == attempt && (join_awaited & BIT(p)) ->
       join_awaited = join_awaited & ~BIT(p);
       if
       :: join_awaited == 0 -> configure()
       :: else
       fi
  :: else
  fi
}

inline on_ready(p) {
  if
  :: joining == p && join_configured && d[p].attempt == attempt -> join_ready = true
  :: else
  fi
}

/* That of an attempt that was given up says nothing, and the next one begins soon. [R5] */
inline on_failure(p) {
#ifdef OLD_FAILURES_COUNT
  assert(false)
#else
  assert(joining != p || d[p].attempt != attempt)
#endif
}

/* --- What a daemon does. */

/* Takes in what the grant names, and only that. */
inline take(p, q) {
  if
  :: d[p].taken[q] < d[p].need[q] ->
       assert(!(d[p].gone & BIT(q)) && (d[p].streams & BIT(q)));
       assert(bound[AT(p, q)] == incarnation[q]); /* nothing of the one before [R2] */
       d[p].taken[q] = d[p].need[q];
       assert(d[p].taken[q] <= COUNT(d[q].sent[p]))
  :: else
  fi
}

/* Everything that a peer sent in earlier windows is in, and nothing of this window or later. [W4] */
inline check_causality(p, q) {
  if
  :: SHARE(p, q) && !(d[p].gone & BIT(q)) ->
       assert((d[q].sent[p] & (BIT(d[p].end - 1) - 1) & ~TOOK(p, q)) == 0);
       assert((TOOK(p, q) & ~(BIT(d[p].end - 1) - 1)) == 0)
  :: else
  fi
}

inline send(p, q) {
  d[p].sent[q] = d[p].sent[q] | BIT(d[p].end - 1)
}

/* The window of its grant. `whom`: who gets a batch; `again`: it has an event in the next window. */
inline run_window(p, whom, again) {
  assert(d[p].end > now[p]);
  d[p].gone = d[p].gone & ~(d[p].back & d[p].streams); /* before what arrives [R4] */
  d[p].back = 0;
  if
  :: !(lost & BIT(p)) ->
       take(p, 0); take(p, 1); take(p, 2);
       check_causality(p, 0); check_causality(p, 1); check_causality(p, 2)
  :: else /* what it sends now may still reach somebody, but nobody goes by what it has */
  fi;
  now[p] = d[p].end;
  j = 0;
  do
  :: j < N ->
       if
       :: (whom & BIT(j)) && SHARE(p, j) && !(d[p].gone & BIT(j)) && (d[p].streams & BIT(j)) ->
            send(p, j)
       :: else -> whom = whom & ~BIT(j)
       fi;
       j++
  :: else -> break
  od;
  j = 0;
  d[p].granted = false;
  d[p].need[0] = 0; d[p].need[1] = 0; d[p].need[2] = 0;
  d[p].end = 0;
  if
  :: !(lost & BIT(p)) -> on_report(p, whom, again)
  :: else /* nobody listens to it any more [L1] */
  fi
}

/* `there`: how many of its batches have arrived. */
inline peer_lost(p, q, upto, there) {
  if
  :: d[p].streams & BIT(q) ->
#ifdef TAKE_WHAT_WAS_NOT_REPORTED
       a = there;
#else
       a = LESS(there, upto); /* [L3] */
#endif
       d[p].taken[q] = MORE(d[p].taken[q], a);
       d[p].accepted[q] = a;
       d[p].streams = d[p].streams & ~BIT(q);
       d[p].need[q] = 0
  :: else
  fi;
  d[p].gone = d[p].gone | BIT(q);
  if
  :: !(lost & BIT(p)) -> on_lost_reply(p, q, d[p].accepted[q])
  :: else
  fi
}

inline peer_back(p, q, number) {
  d[p].streams = d[p].streams | BIT(q);
  d[p].taken[q] = 0; d[p].sent[q] = 0; d[p].accepted[q] = 0;
  bound[AT(p, q)] = 0;
  on_back_reply(p, number)
}

inline granted_to(p, when, what) {
  assert(d[p].ready && !d[p].granted);
  d[p].granted = true;
  d[p].end = (when) & 7;
  d[p].back = (when) >> 3;
  d[p].need[0] = (what) & 3; d[p].need[1] = ((what) >> 2) & 3; d[p].need[2] = ((what) >> 4) & 3
}

proctype Place(byte p) {
  byte whom, there;
  bit again;
end:
  do
  :: atomic { nempty(to[p]) && !over ->
       d_step { to[p]?kind, a, b };
       if
       :: kind == GRANT -> d_step { granted_to(p, a, b) }
       :: kind == PEER_LOST ->
            there = d[p].taken[a];
            do /* what has arrived of it by now, nobody knows */
            :: (d[p].streams & BIT(a)) && there < COUNT(d[a].sent[p]) -> there++
            :: break
            od;
            skip;
            d_step { i = a; peer_lost(p, i, b, there); i = 0; there = 0 }
       :: kind == PEER_BACK -> d_step { i = a; peer_back(p, i, b); i = 0 }
       :: kind == CONFIGURE -> d_step {
            start_anew(p);
            d[p].configured = true;
            d[p].attempt = a;
            d[p].gone = ALL & ~BIT(p); /* all are, until a grant says who is there */
            d[p].streams = b }
       :: kind == DROP -> start_anew(p)
       fi;
       d_step { kind = 0; a = 0; b = 0 } }
  /* Streams are open when both ends have them; whose they are is said in their hello. [R2] */
  :: atomic { d[p].configured && !d[p].ready &&
              ((d[0].streams & BIT(p)) || !(d[p].streams & 1)) &&
              ((d[1].streams & BIT(p)) || !(d[p].streams & 2)) &&
              ((d[2].streams & BIT(p)) || !(d[p].streams & 4)) ->
       there = incarnation[p];
#ifdef NO_INCARNATION_CHECK
       if
       :: stray[p] -> there = incarnation[p] - 1
       :: true
       fi;
#endif
       d_step {
       j = 0;
       do
       :: j < N ->
            if
            :: d[p].streams & BIT(j) -> bound[AT(p, j)] = incarnation[j]; bound[AT(j, p)] = there
            :: else
            fi;
            j++
       :: else -> break
       od;
       j = 0; there = 0;
       d[p].ready = true;
       on_ready(p) } }
  /* A survivor that was told of another loss meanwhile refuses it: it expects no stream any more. */
  :: d_step { d[p].configured && !d[p].ready &&
              (((d[p].streams & 1) && !(d[0].streams & BIT(p))) ||
               ((d[p].streams & 2) && !(d[1].streams & BIT(p))) ||
               ((d[p].streams & 4) && !(d[2].streams & BIT(p)))) ->
       on_failure(p);
       start_anew(p) }
  :: atomic { d[p].granted && !over ->
       if
       :: whom = 0; again = 1
       :: whom = ALL & ~BIT(p); again = 0
#ifdef EVERY_CHOICE
       :: whom = 0; again = 0
       :: whom = ALL & ~BIT(p); again = 1
       :: whom = BIT((p + 1) % N); again = 0
       :: whom = BIT((p + 2) % N); again = 1
#endif
       fi;
       d_step { run_window(p, whom, again); again = 0; whom = 0 } }
  od
}

/* --- What the controller does. */

inline ask(p, q) { /* what has arrived of p [L3] */
  to[q]!PEER_LOST, p,
       (COUNT(announced[AT(p, q)]) > confirmed[AT(p, q)] -> COUNT(announced[AT(p, q)]) : 0);
  awaited[p] = awaited[p] | BIT(q)
}

/* Whoever is on its way into a place begins anew. [R5] */
inline abandon(p) {
  if
  :: joining != N ->
       j = 0;
       do
       :: j < N ->
            if
            :: SHARE(joining, j) && j != p && !(lost & BIT(j)) -> to[j]!PEER_LOST, joining, 0
            :: else
            fi;
            j++
       :: else -> break
       od;
       j = 0;
       if
       :: joining != p -> to[joining]!DROP, 0, 0
       :: else
       fi;
       joining = N; join_awaited = 0; join_configured = false; join_ready = false; attempt = 0
  :: else
  fi
}

inline lose(p) {
  abandon(p);
  here = here & ~BIT(p);
    if
  :: lost & BIT(p) -> clear(to[p]); start_anew(p)
  :: else ->
#ifdef FORGET_THE_WINDOW_OF_THE_LOST
       silent_from[p] = NEVER;
#else
       silent_from[p] = (running & BIT(p) -> time - 1 : time); /* [L2] */
#endif
       stopped[p] = time;
       running = running & ~BIT(p); wakes = wakes & ~BIT(p);
       lost = lost | BIT(p);
       losing = losing | BIT(p);
       k = 0;
       do
       :: k < N ->
            needed[AT(p, k)] = 0; needed[AT(k, p)] = 0; named[AT(p, k)] = 0;
#ifndef CONFIRM_WHAT_WAS_NAMED
            named[AT(k, p)] = 0; /* it may finish the window without [L4] */
#endif
            said[AT(p, k)] = UNANSWERED;
            awaited[k] = awaited[k] & ~BIT(p);
            k++
       :: else -> break
       od;
       k = 0;
       do
       :: k < N ->
            if
            :: SHARE(p, k) && !(lost & BIT(k)) -> ask(p, k)
            :: else
            fi;
            k++
       :: else -> break
       od;
       k = 0
  fi
}

/* From which window on nothing of p reached q: what a replay does. [L5] */
inline check_severed(p, q) {
  if
  :: SHARE(p, q) && (!(lost & BIT(q)) || (losing & BIT(q))) ->
       if
       :: said[AT(p, q)] != UNANSWERED ->
            cut = LESS(silent_from[p], time);
            took = announced[AT(p, q)] &
                   ~FIRST(announced[AT(p, q)], MORE(said[AT(p, q)], confirmed[AT(p, q)]));
            cut = LESS(cut, LOWEST(took));
            /* A replay goes on with its hubs, in windows that it did not have. */
            assert(cut <= stopped[p])
       :: else -> cut = NEVER
       fi;
       k = 0;
       do
       :: k < WINDOWS ->
            if
            /* A lost one's hubs count up to the last window that it reported. */
            :: (d[p].sent[q] & BIT(k)) && (!(losing & BIT(q)) || reported[q] > k + 1) ->
                 assert(((TOOK(q, p) & BIT(k)) != 0) == (k < cut))
            :: else
            fi;
            k++
       :: else -> break
       od;
       k = 0; cut = 0; took = 0
  :: else
  fi
}

/* A command at the end of the window, in the journal before anybody hears of it. [L6] */
inline take_losses() {
  assert((journalled & losing) == 0); /* nobody is lost twice [L7] */
  j = 0;
  do
  :: j < N ->
       if
       :: losing & BIT(j) ->
            i = 0;
            do
            :: i < N -> check_severed(j, i); i++
            :: else -> break
            od;
            i = 0
       :: else
       fi;
       j++
  :: else -> break
  od;
  j = 0;
  journalled = journalled | losing;
  do
  :: j < N ->
       if
       :: losing & BIT(j) ->
            silent_from[j] = 0; stopped[j] = 0;
            k = 0;
            do
            :: k < N ->
                 said[AT(j, k)] = 0; announced[AT(j, k)] = 0; confirmed[AT(j, k)] = 0;
                 announced[AT(k, j)] = 0; confirmed[AT(k, j)] = 0;
                 k++
            :: else -> break
            od;
            k = 0
       :: else
       fi;
       j++
  :: else -> break
  od;
  j = 0;
  losing = 0;
  wakes = wakes | LIVING /* links of lost hubs go down */
}

inline begin_rejoin(p) {
  joining = p;
  attempts++;
  attempt = attempts;
  k = 0;
  do
  :: k < N ->
       if
       :: SHARE(p, k) && !(lost & BIT(k)) ->
            to[k]!PEER_BACK, p, attempt;
            join_awaited = join_awaited | BIT(k) /* [R1] */
       :: else
       fi;
       k++
  :: else -> break
  od;
  k = 0;
#ifdef CONFIGURE_BEFORE_STREAMS
  configure();
  join_awaited = 0
#else
  if
  :: join_awaited == 0 -> configure()
  :: else
  fi
#endif
}

inline take_rejoin() {
  lost = lost & ~BIT(joining);
  here = here & ~BIT(joining);
  journalled = journalled & ~BIT(joining);
  k = 0;
  do
  :: k < N ->
       needed[AT(joining, k)] = 0; named[AT(joining, k)] = 0;
       if
       :: !(lost & BIT(k)) ->
#ifdef TELL_ONLY_THE_RETURNED
            if
            :: k == joining ->
#endif
            back[k] = back[k] | LIVING
#ifdef TELL_ONLY_THE_RETURNED
            :: else
            fi
#endif
       :: else
       fi;
       k++
  :: else -> break
  od;
  k = 0;
  now[joining] = time; reported[joining] = time;
  joining = N; join_awaited = 0; join_configured = false; join_ready = false; attempt = 0;
  wakes = wakes | LIVING
}

inline open_window() {
  running = wakes & LIVING;
  wakes = 0;
  time++;
  k = 0;
  do
  :: k < N ->
       if
       :: running & BIT(k) ->
            assert(!(journalled & BIT(k))); /* who is lost in the journal has no windows [L7] */
            l = needed[AT(k, 0)] + (needed[AT(k, 1)] << 2) + (needed[AT(k, 2)] << 4);
            if
            :: len(to[k]) == 0 -> granted_to(k, time + (back[k] << 3), l)
            :: else -> to[k]!GRANT, time + (back[k] << 3), l
            fi;
            l = 0;
            back[k] = 0;
            named[AT(k, 0)] = needed[AT(k, 0)]; needed[AT(k, 0)] = 0;
            named[AT(k, 1)] = needed[AT(k, 1)]; needed[AT(k, 1)] = 0;
            named[AT(k, 2)] = needed[AT(k, 2)]; needed[AT(k, 2)] = 0
       :: else
       fi;
       k++
  :: else -> break
  od;
  k = 0
}

/* Another controller goes on with what was kept: not with who was on its way in. */
inline take_over() {
  crashes--;
  join_ready = false; join_configured = false; join_awaited = 0; attempt = 0;
  joining = N;
  j = 0;
  do
  :: j < N ->
       if
       :: losing & BIT(j) ->
            k = 0;
            do
            :: k < N ->
                 if
                 :: SHARE(j, k) && !(lost & BIT(k)) &&
#ifdef FORGET_ANSWERS
                    true -> said[AT(j, k)] = UNANSWERED;
#else
                    (awaited[j] & BIT(k)) -> /* those that have answered are not asked again [L3] */
#endif
                      ask(j, k)
#ifdef FORGET_ANSWERS
                 :: SHARE(j, k) && (lost & BIT(k)) -> said[AT(j, k)] = UNANSWERED
#endif
                 :: else
                 fi;
                 k++
            :: else -> break
            od;
            k = 0
       :: else
       fi;
       j++
  :: else -> break
  od;
  j = 0
}

#ifdef OPEN_WHILE_ONE_RUNS
#define MAY_OPEN ((running & (running - 1)) == 0)
#else
#define MAY_OPEN (!BUSY) /* [W1] */
#endif
#ifdef LOSE_BEFORE_ANSWERS
#define MAY_TAKE_LOSSES (running == 0)
#else
#define MAY_TAKE_LOSSES (!BUSY) /* [L6] */
#endif
#define CAN_BE_LOST(p) \
  (losses > 0 && !over && \
   ((!(lost & BIT(p)) && (LIVING & ~BIT(p)) != 0) || (here & BIT(p))))

inline declare(p) {
  losses--;
  lose(p);
  skip
}

active proctype Controller() {
  d_step {
  i = 0;
  do
  :: i < N ->
       d[i].configured = true; d[i].ready = true;
       incarnation[i] = 1;
       k = 0;
       do
       :: k < N ->
            if
            :: SHARE(i, k) -> d[i].streams = d[i].streams | BIT(k); bound[AT(i, k)] = 1
            :: else
            fi;
            k++
       :: else -> break
       od;
       k = 0; i++
  :: else -> break
  od;
  i = 0;
  wakes = ALL };
  atomic { run Place(0); run Place(1); run Place(2) };
end:
  do
  :: d_step { CAN_BE_LOST(0) -> declare(0) }
  :: d_step { CAN_BE_LOST(1) -> declare(1) }
  :: d_step { CAN_BE_LOST(2) -> declare(2) }
#ifdef CHAIN
  /* It dies with a loss in the journal that nobody had to be asked about: the next one has to find
     it there. [L7] */
  :: d_step { crashes > 0 && losses > 0 && !over && !BUSY && losing == 0 && lost == BIT(1) &&
              joining == N ->
       losses--;
#ifdef RETAKE_WITHOUT_THE_PLACE
       journalled = journalled | BIT(0);
#else
       lose(0); take_losses();
#endif
       take_over(); skip }
#endif
  :: d_step { crashes > 0 && !over -> take_over(); skip }
  :: d_step { !over && losing != 0 && MAY_TAKE_LOSSES -> take_losses(); skip }
  /* A new daemon is in the place: started again, a spare, or the lost one that found out. */
  :: d_step { !over && returns > 0 && (lost & ~losing & ~here) != 0 ->
       returns--;
       i = LOWEST(lost & ~losing & ~here);
       here = here | BIT(i);
       clear(to[i]); start_anew(i);
       incarnation[i]++; stray[i] = true;
       i = 0 }
  :: d_step { !over && joining == N && losing == 0 && (here & lost) != 0 && !BUSY ->
       i = LOWEST(here & lost); begin_rejoin(i); i = 0 }
  :: d_step { !over && join_ready && losing == 0 && !BUSY -> take_rejoin(); skip } /* [R3] */
  /* Also while one is being lost: a loss takes effect at the end of a span. */
  :: d_step { !over && MAY_OPEN && (wakes & LIVING) != 0 && time < WINDOWS ->
       open_window(); skip }
  :: d_step { !over && !BUSY && losing == 0 && joining == N && (here & lost) == 0 &&
              ((wakes & LIVING) == 0 || time >= WINDOWS) ->
       over = true }
  od
}

/* However many are lost, virtual time goes on to the end of the run: nobody waits for ever. */
ltl the_run_ends { <> over }
/* Virtual time of a daemon is never ahead of the controller's. */
ltl nobody_is_ahead { [] (now[0] <= time && now[1] <= time && now[2] <= time) }
