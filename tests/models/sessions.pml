/* Sessions over streams that break, and a controller that dies and is started again on what it kept.
 *
 * One daemon, the controller's process after process, the streams between them, a client with
 * commands. Written down in docs/protocol.md, "Sessions" [S1..S6] and "When the controller dies"
 * [T1..T6]: the marks in brackets stand there behind the sentences. Each `#ifdef` is a mutation of
 * the protocol, beside the line that is right; tests/models/test_models.py has each of them refused.
 *
 * Left out: contents of messages but one bit that the controller chose (so that a decision made
 * twice may differ), more than one daemon, keepalive, the loss of the machine.
 */

#ifndef MESSAGES
#define MESSAGES 3 /* that the daemon sends */
#endif
#ifndef COMMANDS
#define COMMANDS 1 /* of the client */
#endif
#ifndef BREAKS
#define BREAKS 2 /* of streams, besides those by crashes */
#endif
#ifndef CRASHES
#define CRASHES 2 /* of the controller */
#endif
#define ACKNOWLEDGE_EVERY 2
#define IN_FLIGHT 2 /* messages that a stream holds each way */
#define NONE 2

/* What a stream carries. A hello has in `ack` what its sender has received. */
#define HELLO 0
#define NUMBERED 1
#define BARE 2

/* --- Streams: two places, as a new one may be there before the other side knows of the old's end. */
chan up[2] = [IN_FLIGHT] of { byte, byte, byte, bit };   /* kind, sequence, acknowledged, bit */
chan down[2] = [IN_FLIGHT] of { byte, byte, byte, bit };
bool broken[2];
bool d_open[2], c_open[2]; /* the end has not closed it yet */
byte breaks = BREAKS, crashes = CRASHES;

/* --- The daemon. It keeps d_acked + 1 .. d_sent. */
byte d_sent, d_acked, d_received, d_next = 1, d_told;
byte d_stream = NONE;
bool d_attached;
byte d_bits; /* of what it has got, by number */

/* --- The controller's process. It keeps c_acked + 1 .. c_sent. */
bool c_alive = true;
byte c_sent, c_acked, c_received, c_next = 1, c_told;
byte c_released, c_durable; /* of c_sent and c_received: in the last commit [T2] */
byte c_bits;
byte c_acted;   /* messages of the daemon that were acted upon */
byte c_applied; /* commands that took effect */
byte c_taken;   /* commands up to here are in what the next commit keeps */
byte c_stream = NONE, c_waiting = NONE, c_waiting_received;
bool c_journalling; /* a command is in the journal and has not taken effect yet */

/* --- On disk: the journal, and state.db as the last commit left it. */
byte journal;
byte db_sent, db_acked, db_received, db_bits, db_acted, db_applied, db_taken;

/* --- The client. */
byte asked, answered;

bit choice;
byte kind, sequence, acknowledged;
bit content;

/* Takes back what a closed end had not read. Both ends are gone: the place is free. */
inline drain(c) {
  do
  :: nempty(c) -> c?_, _, _, _
  :: empty(c) -> break
  od;
  skip
}

/* "An acknowledgement of what was never sent is DATA_LOSS." [S4] */
inline d_acknowledge(number) {
  assert(number <= d_sent);
  if
  :: number > d_acked -> d_acked = number
  :: else
  fi;
  if
  :: d_next <= d_acked -> d_next = d_acked + 1
  :: else
  fi;
  /* Whatever the daemon forgets is in the database. [T3] */
  assert(d_acked <= db_received)
}

inline c_acknowledge(number) {
  assert(number <= c_sent);
  if
  :: number > c_acked -> c_acked = number
  :: else
  fi;
  if
  :: c_next <= c_acked -> c_next = c_acked + 1
  :: else
  fi
}

/* What the daemon has seen is in the database, and is what the controller goes on with. [T3] */
inline d_take(number, bit_of_it) {
  d_received++;
  assert(number == d_received);
  d_bits = d_bits | (bit_of_it << number);
  assert(number <= db_sent);
  assert(((db_bits >> number) & 1) == bit_of_it)
}

active proctype Daemon() {
end:
  do
  :: d_step { d_sent < MESSAGES -> d_sent++ }
  /* "the side that dialled dials again" [S5]; only after its own end has closed. */
  :: d_step { d_stream == NONE && c_alive && !d_open[0] && !c_open[0] && empty(up[0]) ->
       drain(down[0]);
       d_stream = 0; d_open[0] = true; broken[0] = false;
       up[0]!HELLO, 0, d_received, 0 }
  :: d_step { d_stream == NONE && c_alive && !d_open[1] && !c_open[1] && empty(up[1]) ->
       drain(down[1]);
       d_stream = 1; d_open[1] = true; broken[1] = false;
       up[1]!HELLO, 0, d_received, 0 }
  :: d_step { d_stream != NONE && nempty(down[d_stream]) ->
       down[d_stream]?kind, sequence, acknowledged, content;
       if
       :: kind == HELLO -> /* [S1], [S2] */
            d_acknowledge(acknowledged);
            d_attached = true;
#ifdef NO_RESEND
            skip
#else
            d_next = d_acked + 1
#endif
       :: kind == BARE -> d_acknowledge(acknowledged)
       :: kind == NUMBERED ->
            d_acknowledge(acknowledged);
            if
            :: sequence <= d_received -> skip /* [S3] a repetition */
            :: else -> d_take(sequence, content)
            fi
       fi;
       kind = 0; sequence = 0; acknowledged = 0; content = 0 }
  :: d_step { d_attached && !broken[d_stream] && nfull(up[d_stream]) && d_next <= d_sent ->
       d_told = d_received;
       up[d_stream]!NUMBERED, d_next, d_told, 0;
#ifdef FORGET_WHEN_WRITTEN
       d_acked = d_next;
#endif
       d_next++ }
  :: d_step { d_attached && !broken[d_stream] && nfull(up[d_stream]) && d_next > d_sent &&
              d_received - d_told >= ACKNOWLEDGE_EVERY -> /* [S6] */
       d_told = d_received;
       up[d_stream]!BARE, 0, d_told, 0 }
  /* It notices the end: what it has not read is lost, or it has read all. */
  :: d_step { d_stream != NONE && broken[d_stream] ->
       drain(down[d_stream]);
       d_open[d_stream] = false; d_attached = false; d_stream = NONE }
  od
}

/* The first message of a stream, in `acknowledged`: how much the daemon has. */
inline c_attach(stream, number) {
  c_stream = stream;
#ifdef HELLO_BEFORE_COMMIT
  down[stream]!HELLO, 0, c_received, 0;
#else
  down[stream]!HELLO, 0, c_durable, 0; /* [T2] */
#endif
  c_acknowledge(number);
  c_next = c_acked + 1
}

inline c_act(number) {
  c_received++;
  assert(number == c_received); /* once and in order */
  c_acted++;
  if
  :: choice == 1 -> c_sent++ /* a decision: which one, nobody can foresee */
  :: else
  fi
}

#define C_MAY_WRITE (c_stream != NONE && !broken[c_stream] && nfull(down[c_stream]))
#ifdef SEND_BEFORE_COMMIT
#define MAY_LEAVE c_sent
#else
#define MAY_LEAVE c_released /* [T1] */
#endif
#ifdef ACKNOWLEDGE_BEFORE_COMMIT
#define KEEPABLE c_received
#else
#define KEEPABLE c_durable /* [T2] */
#endif
#define C_BUSY (c_journalling)

active proctype Controller() {
  byte from;
  bit decides, with;
end:
  do
  /* A stream brings something: the one that carries the session, or a new one with its hello. */
  :: atomic { c_alive && !C_BUSY && (nempty(up[0]) || nempty(up[1])) ->
       if
       :: nempty(up[0]) -> from = 0
       :: nempty(up[1]) -> from = 1
       fi;
       if :: decides = 0 :: decides = 1 fi;
       if :: decides -> if :: with = 0 :: with = 1 fi :: else -> with = 0 fi;
       d_step {
       up[from]?kind, sequence, acknowledged, content;
       if
       :: kind == HELLO ->
            c_open[from] = true;
            if
            :: c_stream == NONE -> c_attach(from, acknowledged)
            :: else -> /* "a new hello of the same speaker replaces it" [S5] */
                 broken[c_stream] = true;
                 assert(c_waiting == NONE);
                 c_waiting = from; c_waiting_received = acknowledged
            fi
       :: kind == BARE -> c_acknowledge(acknowledged)
       :: kind == NUMBERED ->
            assert(from == c_stream);
            c_acknowledge(acknowledged);
            if
#ifndef NO_REPETITION_CHECK
            :: sequence <= c_received -> skip /* [S3] */
#endif
            :: else ->
                 choice = decides;
                 c_act(sequence);
                 if
                 :: decides -> c_bits = c_bits | (with << c_sent)
                 :: else
                 fi
            fi
       fi;
       kind = 0; sequence = 0; acknowledged = 0; content = 0; choice = 0;
       from = 0; decides = 0; with = 0 } }
  /* One step of the controller is committed as a whole; then, and only then, it goes out. [T1] A disk
     that is full for a while delays this: other steps come first. */
  :: d_step { c_alive && !C_BUSY && c_sent != c_released ->
       db_sent = c_sent; db_received = c_received; db_bits = c_bits; db_acted = c_acted;
#ifdef KEEP_NO_UNACKNOWLEDGED
       db_acked = c_sent;
#else
       db_acked = c_acked; /* [T3] messages that it has not acknowledged are kept with it */
#endif
       db_applied = c_applied;
#ifndef FORGET_HOW_MANY_WERE_TAKEN
       db_taken = c_taken; /* [T5] */
#endif
       c_released = c_sent; c_durable = c_received }
  :: d_step { c_alive && !C_BUSY && C_MAY_WRITE && c_next <= MAY_LEAVE ->
       c_told = KEEPABLE;
       down[c_stream]!NUMBERED, c_next, c_told, ((c_bits >> c_next) & 1);
       c_next++ }
  :: d_step { c_alive && !C_BUSY && C_MAY_WRITE && c_next > MAY_LEAVE &&
              KEEPABLE - c_told >= ACKNOWLEDGE_EVERY ->
       c_told = KEEPABLE;
       down[c_stream]!BARE, 0, c_told, 0 }
  /* The old stream has closed; the one that waits takes its place. */
  :: d_step { c_alive && c_stream != NONE && broken[c_stream] ->
       drain(up[c_stream]);
       c_open[c_stream] = false;
       c_stream = NONE;
       if
       :: c_waiting != NONE && !broken[c_waiting] ->
            from = c_waiting; c_waiting = NONE;
            c_attach(from, c_waiting_received); from = 0
       :: c_waiting != NONE && broken[c_waiting] ->
            drain(up[c_waiting]); c_open[c_waiting] = false; c_waiting = NONE
       :: else
       fi;
       if
       :: c_waiting == NONE -> c_waiting_received = 0
       :: else
       fi }
  /* A hello that nobody will follow up: its dialler has gone. */
  :: d_step { c_alive && !d_open[0] && !c_open[0] && nempty(up[0]) -> drain(up[0]) }
  :: d_step { c_alive && !d_open[1] && !c_open[1] && nempty(up[1]) -> drain(up[1]) }
  /* A command of a client: journalled, then it takes effect and is acknowledged. [T4] */
  :: d_step { c_alive && !C_BUSY && asked > c_taken ->
#ifdef ANSWER_BEFORE_JOURNAL
       answered = asked;
#endif
       c_journalling = true }
  :: atomic { c_alive && C_BUSY ->
       if :: with = 0 :: with = 1 fi;
       d_step {
#ifdef EFFECT_BEFORE_JOURNAL
       skip
#else
       journal = asked
#endif
       ;
       c_applied++; c_taken++; c_sent++;
       c_bits = c_bits | (with << c_sent);
       with = 0;
       c_journalling = false } }
  :: d_step { c_alive && !C_BUSY && answered < c_taken &&
#ifdef EFFECT_BEFORE_JOURNAL
              true ->
       journal = c_taken;
#else
              true ->
#endif
       answered = c_taken }
  od
}

/* The process is killed: at any moment, also with a command in the journal that has not been taken. */
active proctype World() {
  bit with;
end:
  do
  :: d_step { breaks > 0 && d_open[0] && !broken[0] -> breaks--; broken[0] = true }
  :: d_step { breaks > 0 && d_open[1] && !broken[1] -> breaks--; broken[1] = true }
  :: d_step { asked < COMMANDS && asked == answered && c_alive -> asked++ }
  :: d_step { crashes > 0 && c_alive && c_journalling -> /* between journal and effect */
       journal = asked; crashes--; c_alive = false }
  :: d_step { crashes > 0 && c_alive -> crashes--; c_alive = false }
  :: atomic { !c_alive -> /* started again, on the same folder [T6] */
       if :: with = 0 :: with = 1 fi;
       d_step {
       broken[0] = true; broken[1] = true;
       drain(up[0]); drain(up[1]);
       c_open[0] = false; c_open[1] = false;
       c_stream = NONE; c_waiting = NONE; c_waiting_received = 0; c_told = 0;
       c_journalling = false;
       c_sent = db_sent; c_released = db_sent;
       c_received = db_received; c_durable = db_received;
       c_acked = db_acked; c_next = c_acked + 1;
       c_bits = db_bits; c_acted = db_acted; c_applied = db_applied;
       c_taken = db_taken;
#ifdef NO_RETAKE
       c_taken = journal;
#endif
       do /* "once, at its time in the journal, before any other command" [T5] */
       :: c_taken < journal ->
            c_taken++; c_applied++; c_sent++;
            c_bits = c_bits | (with << c_sent)
       :: else -> break
       od;
       assert(answered <= c_taken); /* nothing that was acknowledged is lost [T4] */
       assert(c_applied == journal); /* and nothing happened twice, or unwritten [T5] */
       with = 0;
       c_alive = true } }
  od
}

#define DELIVERED (d_sent == MESSAGES && c_received == d_sent && d_received == c_sent)
#define DONE (DELIVERED && asked == COMMANDS && answered == COMMANDS && c_applied == COMMANDS)

/* Whatever breaks a bounded number of times, everything arrives in the end, and once. */
ltl everything_arrives { <> [] DONE }
/* What was acted upon is what was received, at all times. */
ltl once { [] (c_acted == c_received && c_applied <= asked) }
