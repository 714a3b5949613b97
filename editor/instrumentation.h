// SPDX-License-Identifier: Apache-2.0
/*
 * instrumentation - what an output has beside copies of blocks: stubs, the counters that they use,
 * and the table that says what stubs and counters mean. instrument, number, versions, call_clock and
 * adjust fill it; place and emit read it together with the plan.
 */
#ifndef ME_INSTRUMENTATION_H
#define ME_INSTRUMENTATION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

/* The paths to a block that lead through a stub. */
enum me_stub_arrivals {
	ME_STUB_ALL,	 /* all paths */
	ME_STUB_OUTSIDE, /* from outside of the function */
	ME_STUB_EDGE,	 /* from the end of one block */
	ME_STUB_POLL,	 /* from the stub that polls before the block */
};

enum me_stub_does {
	ME_STUB_COUNTS, /* adds 1 to @counter (instrument.h) */
	ME_STUB_SETS,	/* @reg = @value (number.h) */
	ME_STUB_ADDS,	/* @reg = @reg_from + @value */
	ME_STUB_PASSES, /* nothing; it polls */
	ME_STUB_NOTES,	/* notes @reg for block @counter (poll_code.h) */
	ME_STUB_WAITS,	/* runs @value nops of one byte (layout/adjust.h) */
	ME_STUB_ENTERS, /* goes to a version of audited function @counter (audit_code.h) */
	ME_STUB_LEAVES, /* stops the timing of audited function @counter */
	ME_STUB_TIMES,	/* counts rounds of a loop of it, which may end a timing and begin one */
	ME_STUB_CLOCKS, /* counts calls down; the last one takes the stub that samples (clock_code.h) */
	ME_STUB_SAMPLES, /* has the call sampled */
};

/* How counters behave when several threads count at once. */
enum me_counters {
	ME_COUNTERS_PLAIN,   /* some counts are lost */
	ME_COUNTERS_ATOMIC,  /* exact, but processors wait for each other */
	ME_COUNTERS_THREADS, /* each thread has counters of its own */
};

/* A stub: one instruction, perhaps a check before and a poll behind it; then control goes to
 * the block. */
struct me_stub {
	uint32_t counter; /* index; of ME_STUB_NOTES: block in the table */
	/* value that is set, at least 0, or added; number of nops; of ME_STUB_ENTERS: the function
	 * has timing points; of ME_STUB_TIMES: least rounds */
	int32_t value;
	uint32_t from;	       /* of ME_STUB_EDGE: cfg block index */
	uint8_t arrivals;      /* enum me_stub_arrivals */
	uint8_t does;	       /* enum me_stub_does */
	uint8_t reg, reg_from; /* as instructions encode them */
	uint8_t scratch;       /* of ME_STUB_NOTES: another register */
	bool checks;	       /* first makes sure that the thread has counters */
	uint8_t point;	       /* of ME_STUB_TIMES: index of the timing point */
	uint8_t version;       /* of ME_STUB_TIMES: enum mp_audit_version */
	uint8_t vector;	       /* xmm8 to xmm15 saves @scratch; 0: @scratch is free */
	bool polls;	       /* if a poll is due, control takes the stub that notes */
};

/* Addresses that instructions of stubs use. */
struct me_stub_places {
	uint64_t counters; /* of the first counter, or the polls */
	uint64_t state;	   /* of struct me_thread_state, with counters per thread */
	uint64_t thread;   /* of the runtime's entry for a thread without counters */
	uint64_t notes; /* of the stub that notes or samples, for one that polls or counts calls */
	uint64_t call;	/* of the runtime's entry for calls */
	uint64_t enter, leave; /* of the runtime's entries for audits */
	uint64_t point;	       /* of the runtime's entry for loops */
	/* of version B, for the stub at the entry of an audited function; of the same block in the
	 * other version, for a stub in a loop */
	uint64_t other;
	/* of both versions without stubs: their entries, or for a stub in a loop the same block */
	uint64_t untimed[2];
};

/* An output without stubs has all zeros. */
struct me_instrumentation {
	struct me_stub *stubs; /* one per block of the plan with @stub, in the same order */
	uint32_t nr_stubs;
	uint32_t nr_counters; /* of 8 bytes */
	uint8_t counters;     /* enum me_counters */
	bool polls;	      /* the counters are a struct mp_polls, and a page behind it */
	bool clocks;	      /* the counters are a struct me_call_clock */
	uint32_t nr_audited;  /* functions with two versions: the counters are their slots */
	/* what the stubs mean, by edge_table or path_table; NULL: nothing, or emit makes it */
	uint8_t *table;
	size_t table_size;
	const char *table_name;	 /* name of the table's section; not owned */
	const char *counts_path; /* file that a run maps its counters to; not owned */
};

/* Frees what @added holds, not @added itself. */
static inline void me_instrumentation_fini(struct me_instrumentation *added)
{
	free(added->stubs);
	free(added->table);
	*added = (struct me_instrumentation){0};
}

#endif
