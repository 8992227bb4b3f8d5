/* SPDX-License-Identifier: Apache-2.0 */
/* stream_handover.pml - streams that hand fused calls over to each other, outside of CUDA graphs
 * (collectives/device/fused/stream_handover.c), as a model for Spin; run.sh runs it.
 *
 * Each rank has three processes: its host enqueues, its stream carries out what is enqueued, its
 * watch waits for the stream and releases it when the group breaks.  Rank j < L is leader j.
 * Besides there is, with FAIL, one that breaks the group at any time or never; with KILL, one that
 * ends a rank at any time; with LOCKS, one that takes a rank's driver away from its host until the
 * stream has no more work, as cudaFree() in another thread may.
 *
 * A call, number c, is enqueued in five parts:
 *
 *           leader                                      another rank
 *   part 1  set READY (if there are several leaders)    set READY
 *   part 2  wait for READY of each other rank, set BEGUN
 *   part 3  the kernel
 *   part 4  set WORKED, OVER
 *   part 5  wait for OVER of each other leader, set PASSED (both)
 *
 * The ranks agree on the call before any of them enqueues a part, so nobody waits for another host
 * between two parts.  With one leader PASSED is its WORKED, and belongs to part 4.  A leader that
 * can't enqueue its kernel breaks the group, then enqueues the rest all the same: another leader's
 * kernel may use the buffers of a rank that is READY.
 *
 * When a group is broken, the kernels are called off.  A leader whose BEGUN is its WORKED has no
 * kernel that runs, and those to come do nothing.  So nobody waits for a leader whose stream stands
 * before a kernel, whatever it stands for.
 *
 * What must hold, whatever fails at whatever time:
 *
 *   inside   a kernel that is not called off runs only while each other live rank's stream is
 *            between its READY and its PASSED of this call: else the rank may have freed or
 *            overwritten its buffers.  So no stream passes a call whose kernel runs or may run.
 *   end      no process waits for ever: a live rank's host, stream and watch come to their ends.
 *            Anything else is an invalid end state for Spin.  No run is endless: a watch raises a
 *            word only while that is too low.
 *   report   a watch takes a call for a good one only if all its kernels have run.
 *   all      without a failure all calls are carried out, in order.
 *
 * Other names that can be defined are mistakes: with any of them Spin finds an error (run.sh), but
 * for RAISES_AT_ONCE, which makes fewer states.
 *
 * Not here: numbers that wrap; streams that a driver's error has ended, or a rest of a call that the
 * driver refuses, for which a watch has a time limit; the end of the group and its words' memory;
 * launches of graphs; a GPU's stores and loads that the host sees in another order.
 *
 * A word holds a call's number.  A wait passes when the word is the same or larger.  Steps that no
 * other process can tell from one step are one (atomic). */

#ifndef N
#define N 2 /* ranks: 2 or 3 */
#endif
#ifndef L
#define L 1 /* leaders: 1 or 2 */
#endif
#ifndef C
#define C 2 /* calls */
#endif

/* ---- Words that all ranks and their GPUs share ----------------------------------------- */

byte READY[N], OVER[L], PASSED[N];
#if L > 1
byte WORKED[L];
#else
#define WORKED PASSED
#endif
byte BEGUN[L];
bit CALLED_OFF[L];

/* ---- What the hosts share -------------------------------------------------------------- */

bit broken;      /* the group is */
byte calls[N];   /* the last call that the rank enqueues, or has; set before part 1 */
byte arrived[N]; /* the call whose buffers the rank has offered */
bit dead[N];     /* the process, its stream and its kernel are gone */
#ifdef PHASES
byte ended[L];   /* the leader's in_streams are 0 up to this call */
#endif

/* ---- Between a host and its own driver ------------------------------------------------- */

byte enqueued[N];  /* parts, of all calls */
byte no_kernel[L]; /* the call whose kernel could not be enqueued */
bit finished[N];   /* the host enqueues nothing more */
#ifdef PASSES_AT_ONCE
byte no_wait[N];   /* the call whose OVER the stream does not wait for */
#define NO_WAIT (no_wait[r] == c)
#else
#define NO_WAIT 0
#endif
#ifdef LOCKS
byte carried[N];   /* parts that the stream has carried out */
bit locked[N];     /* the driver lets the host enqueue nothing */
#define MAY_ENQUEUE (!locked[r])
#define CARRIED(n) carried[r] = PART(c, n)
#define TOGETHER /* the driver may be taken away between two parts */
#else
#define MAY_ENQUEUE (1)
#define CARRIED(n) skip
#define TOGETHER atomic /* the stream may be slow, so the host need not */
#endif
#ifdef WATCHES_LAST
bit watched[N];    /* the watch has something to watch */
#define WATCHED watched[r]
#define WATCH watched[r] = 1
#else
#define WATCHED 1
#define WATCH skip
#endif

/* ---- For the properties alone ---------------------------------------------------------- */

byte inside[N];  /* the call that the stream is inside of; 0: none */
byte running[L]; /* the call whose kernel runs; 0: none */
byte ran[C + 1]; /* kernels that ran to their ends */

#define PART(c, n) (5 * ((c) - 1) + (n))
#define MIN(a, b) (((a) < (b)) -> (a) : (b))

#if N == 2
#define ALL_ARRIVED(c) (arrived[0] >= c && arrived[1] >= c)
#define A_RANK_IS_GONE (dead[0] || dead[1])
#else
#define ALL_ARRIVED(c) (arrived[0] >= c && arrived[1] >= c && arrived[2] >= c)
#define A_RANK_IS_GONE (dead[0] || dead[1] || dead[2])
#endif

/* Calls up to this one have no kernel of the leader that runs or may still begin, once all are
 * called off. */
#ifdef TRUSTS_OVER
#define FREE_OF(j) ((!dead[j] && OVER[j] < BEGUN[j]) -> OVER[j] : C)
#else
#define FREE_OF(j) ((!dead[j] && WORKED[j] < BEGUN[j]) -> WORKED[j] : C)
#endif
#if L == 1
#define ALL_FREE FREE_OF(0)
#else
#define ALL_FREE MIN(FREE_OF(0), FREE_OF(1))
#endif
#ifdef AWAITS_NO_LEADER
#define FREE C
#else
#define FREE ALL_FREE
#endif

/* ---- A stream ------------------------------------------------------------------------- */

#define HAS(n) enqueued[r] >= PART(c, n)
#define HAS_NOT(n) finished[r] && enqueued[r] < PART(c, n)

proctype stream(byte r)
{
    byte c = 1, i;

    { do
    :: c > C -> break
    :: c <= C && HAS_NOT(1) -> break
    :: atomic {
        c <= C && HAS(1) ->
        if
        :: r >= L || L > 1 -> READY[r] = c; inside[r] = c
        :: else
        fi;
        CARRIED(1);
        i = (r == 0 -> 1 : 0)
       }
        if
        :: r < L ->
            do
            :: HAS_NOT(2) -> goto end
            :: atomic {
                HAS(2) && READY[i] >= c ->
                i = (i + 1 == r -> i + 2 : i + 1);
                if
                :: i < N
                :: else -> i = 0; CARRIED(2); break
                fi
               }
            od;
            BEGUN[r] = c;
            if
            :: HAS_NOT(3) -> goto end
            :: atomic {
                HAS(3) ->
                if
                :: no_kernel[r] == c || CALLED_OFF[r]
                :: else ->
                    running[r] = c;
                    do
                    :: i == N -> break
                    :: else -> assert(i == r || dead[i] || inside[i] == c); i++
                    od;
                    i = 0
                fi;
                CARRIED(3)
               }
            fi;
            /* The kernel runs from there to here, or it has done nothing. */
            if
            :: HAS_NOT(4) -> goto end
            :: atomic {
                HAS(4) ->
                if
                :: running[r] == c -> ran[c]++
                :: else
                fi;
                running[r] = 0;
#if L > 1
                WORKED[r] = c
#else
                OVER[r] = c
#endif
               }
            fi;
#if L > 1
            atomic { OVER[r] = c; CARRIED(4); i = (r == 0 -> 1 : 0) }
#else
            atomic { PASSED[r] = c; CARRIED(4); i = 1 }
#endif
        :: else -> i = 0
        fi;
        do
        :: HAS_NOT(5) -> goto end
        :: atomic {
            HAS(5) && i < L && (OVER[i] >= c || NO_WAIT) ->
            i = (i + 1 == r -> i + 2 : i + 1)
           }
        :: atomic {
            HAS(5) && i >= L ->
            i = 0;
            do
            :: i == L -> break
            :: else -> assert(i == r || running[i] != c); i++
            od;
            i = 0;
            inside[r] = 0;
            PASSED[r] = c;
            CARRIED(5);
            c++;
            break
           }
        od
    od } unless { dead[r] };
end:
    c = 0;
    i = 0
}

/* ---- A host --------------------------------------------------------------------------- */

#define ENQUEUE(n) atomic { MAY_ENQUEUE -> enqueued[r] = PART(c, n) }

proctype host(byte r)
{
    byte c = 1;

    { arrived[r] = 1;
    do
    :: c > C -> break
    :: c <= C && broken -> break
    :: c <= C && A_RANK_IS_GONE -> broken = 1; break
    /* A host first says that it enqueues the call, then looks whether it may.  A watch first breaks
     * the group, then looks what its host enqueues.  So one of the two sees the other. */
#ifdef LOOKS_FIRST
    :: atomic { c <= C && ALL_ARRIVED(c) && !broken };
        TOGETHER {
        calls[r] = c;
#else
    :: atomic { c <= C && ALL_ARRIVED(c) -> calls[r] = c };
        TOGETHER {
        if
        :: atomic {
            broken ->
#ifndef KEEPS_COUNT
            calls[r] = c - 1;
#endif
            break
           }
        :: else
        fi;
#endif
#ifndef WATCHES_LAST
        WATCH;
#endif
        if
        :: r < L ->
            ENQUEUE(1);
            ENQUEUE(2);
            if
            :: ENQUEUE(3)
#ifdef FAIL
            :: atomic {
                MAY_ENQUEUE ->
                no_kernel[r] = c;
#ifndef BREAKS_LATE
                broken = 1;
#endif
#ifdef LEAVES_HALF
                break
#else
                enqueued[r] = PART(c, 3)
#endif
               }
#ifdef PASSES_AT_ONCE
                no_wait[r] = c
#endif
#endif
            fi;
            ENQUEUE(4)
        :: r >= L ->
#ifdef READY_LAST
            if
            :: enqueued[0] >= PART(c, 4)
            :: broken || A_RANK_IS_GONE
            fi;
#endif
            ENQUEUE(1)
        fi
        }
        atomic {
            MAY_ENQUEUE ->
            enqueued[r] = PART(c, 5);
            WATCH;
            c++;
            arrived[r] = c
        }
#ifdef BREAKS_LATE
        if
        :: r < L ->
            if
            :: no_kernel[r] == c - 1 -> broken = 1
            :: else
            fi
        :: else
        fi
#endif
    od;
    finished[r] = 1 } unless { dead[r] };
end:
    c = 0
}

/* ---- A watch -------------------------------------------------------------------------- */

/* Raises a word, as a host can: it looks, and then stores, and a GPU may have stored meanwhile. */
#ifdef RAISES_AT_ONCE /* smaller */
#define RAISE(mine, word, to) atomic { (mine) && word < (to) -> word = (to) }
#else
#define RAISE(mine, word, to)                                                                      \
    atomic { (mine) && word < (to) -> value = (to) };                                              \
    atomic { word = value; value = 0 }
#endif

inline call_off()
{
    atomic {
#ifdef CALLS_OWN_OFF
        if
        :: r < L -> CALLED_OFF[r] = 1
        :: else
        fi
#else
        CALLED_OFF[0] = 1;
#if L > 1
        CALLED_OFF[1] = 1
#endif
#endif
    }
}

/* Mistakes.  PHASES: a leader releases all its calls, then awaits the other leaders, and only then
 * raises OVER.  ONE_BY_ONE: that for each call.  ONCE: raises each word once. */
#ifdef ONE_BY_ONE
#define TO (c + 1)
#else
#define TO calls[r]
#endif
#define NOT_IN_USE(j) (r == j || dead[j] || ended[j] >= calls[j])

inline phases()
{
    do
    :: PASSED[r] >= calls[r] -> break
    :: PASSED[r] < calls[r] ->
        do
        :: r >= L || WORKED[r] >= TO || TO > calls[r] -> break
        :: RAISE(r < L && r != 0, READY[0], TO)
        :: RAISE(r < L && r != 1, READY[1], TO)
        od;
        if
        :: r < L -> ended[r] = TO
        :: else
        fi;
        NOT_IN_USE(0);
#if L > 1
        NOT_IN_USE(1);
#endif
        do
        :: PASSED[r] >= TO || TO > calls[r] -> break
        :: RAISE(r != 0, OVER[0], TO)
#if L > 1
        :: RAISE(r != 1, OVER[1], TO)
#endif
        od;
        c++
    od;
    if
    :: r < L -> ended[r] = calls[r]
    :: else
    fi
}

inline raise_once(word)
{
    if
    :: word < calls[r] -> word = calls[r]
    :: else
    fi
}

inline once()
{
    if
    :: r == 0 -> raise_once(READY[1])
    :: r == 1 && L > 1 -> raise_once(READY[0])
    :: else
    fi;
    FREE >= calls[r];
    if
    :: r != 0 -> raise_once(OVER[0])
    :: r == 0 && L > 1 -> raise_once(OVER[L - 1])
    :: else
    fi;
    PASSED[r] >= calls[r]
}

proctype watch(byte r)
{
    byte c, value;

    { do
    :: atomic {
        WATCHED && c < calls[r] && PASSED[r] > c ->
        c++;
#ifdef PHASES
        if
        :: r < L -> ended[r] = c
        :: else
        fi;
#endif
        if
#ifndef TRUSTS_PASSED
        :: broken -> break
#endif
        :: else -> assert(ran[c] == L)
        fi
       }
    :: WATCHED && c < calls[r] && (broken || A_RANK_IS_GONE) -> break
    :: finished[r] && c >= calls[r] -> assert(broken || c == C); goto end
    od;
    broken = 1;
#ifndef PHASES
    c = 0;
#endif
#ifndef CALLS_OFF_LATE
    call_off();
#endif
#if defined PHASES
    phases();
#elif defined ONCE
    once();
#else
    /* Any order will do, and what a GPU has lowered again is raised again. */
    do
    :: PASSED[r] >= calls[r] -> break
    :: RAISE(r < L && r != 0, READY[0], calls[r])
    :: RAISE(r < L && r != 1, READY[1], calls[r])
#if N > 2
    :: RAISE(r < L, READY[2], calls[r])
#endif
    :: RAISE(r != 0, OVER[0], MIN(calls[r], FREE))
#if L > 1
    :: RAISE(r != 1, OVER[1], MIN(calls[r], FREE))
#endif
    od;
#endif
    call_off() } unless { dead[r] };
end:
    c = 0;
    value = 0
}

/* ---- What goes wrong ------------------------------------------------------------------ */

proctype breaker()
{
    broken = 1
}

#ifndef LAST_VICTIM
#define LAST_VICTIM (N - 1)
#endif

proctype killer()
{
    byte r;

    select(r : 0 .. LAST_VICTIM);
    atomic {
        dead[r] = 1;
        inside[r] = 0;
        if
        :: r < L -> running[r] = 0
        :: else
        fi;
        r = 0
    }
}

#ifdef LOCKS
proctype locker()
{
    byte r;

    select(r : 0 .. N - 1);
    locked[r] = 1;
    atomic { carried[r] == enqueued[r] || dead[r] -> locked[r] = 0; r = 0 }
}
#endif

init
{
    byte r;

    atomic {
        do
        :: r == N -> break
        :: else -> run stream(r); run host(r); run watch(r); r++
        od;
#ifdef FAIL
        run breaker();
#endif
#ifdef KILL
        run killer();
#endif
#ifdef LOCKS
        run locker();
#endif
        r = 0
    }
}
