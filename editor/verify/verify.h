// SPDX-License-Identifier: Apache-2.0
/*
 * verify - decides whether an output behaves as its original, under stated assumptions.
 *
 * Reads the original and the output as files and compares them. The map note only says where to
 * look; nothing in it is trusted. Shares no code with cfg, layout, emit or unwind: verify has
 * its own function bounds, its own scan for possible targets, its own reader of unwind rows
 * (the tests compare it with libdw). Documentation/verify.md lists the assumptions.
 */
#ifndef ME_VERIFY_H
#define ME_VERIFY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libprof/elf/elf.h"
#include "libprof/base/err.h"

#define ME_MAX_UNPROVED 256
#define ME_MAX_REFUSED	32

/* A function of the original, and the registers that stubs of its copy set and that may be
 * live. */
struct me_unproved {
	uint64_t start;
	uint16_t registers;
};

/* A function of the original that was refused, and why. */
struct me_refused {
	uint64_t vaddr; /* in the function */
	char why[240];
};

struct me_verify_report {
	uint64_t nr_pieces, nr_insns; /* copied code compared */
	uint64_t nr_patches;	      /* jumps written over old block starts */
	uint64_t nr_retargeted;	      /* calls and jumps in old code led to copies */
	uint64_t nr_table_entries;    /* table words led to copies */
	uint64_t nr_pointers;	      /* function addresses replaced by the copy's */
	uint64_t nr_unwind_rows;      /* rows compared */
	uint64_t nr_landing_pads;
	uint64_t nr_via_slot; /* calls and jumps of copies that go through a PLT stub's slot */
	uint64_t nr_inlined;  /* calls of copies that were replaced by the called function's code */
	uint64_t nr_left_out; /* runs of instructions for code markers that a copy lacks */
	/* Functions that were refused for such registers: the first ME_MAX_UNPROVED of them. */
	struct me_unproved unproved[ME_MAX_UNPROVED];
	uint32_t nr_unproved;
	/* Instructions that copies lack and that may be needed: the first ME_MAX_UNPROVED. */
	uint64_t needed[ME_MAX_UNPROVED];
	uint32_t nr_needed;
	/*
	 * If each difference that was found belongs to a function: the first of these functions, at
	 * most ME_MAX_REFUSED. An output without their copies may be accepted.
	 */
	struct me_refused refused[ME_MAX_REFUSED];
	uint32_t nr_refused;
	/* Instrumentation: the output counts, keeps path numbers in registers, polls, audits, samples
	 * calls. */
	bool counts, keeps_numbers, polls, audits, samples_calls;
};

/*
 * me_verify - compare @original and @output (both opened with MP_ELF_ALL).
 * @report: filled also when refused; may be NULL.
 * Return: 0 proved; -EBADMSG refused, with the first difference and its address in @err;
 * -ENOMEM.
 */
int me_verify(const struct mp_elf *original, const struct mp_elf *output,
	      struct me_verify_report *report, struct mp_err *err);
/* Separate debug files, both opened with MP_ELF_DEBUG and MP_ELF_SYMBOLS. */
struct me_verify_debug {
	const struct mp_elf *original, *output;
	const char *name; /* the name by which the program's output finds @output */
};

/*
 * me_verify() on up to @nr_threads threads. Verdict, message and report do not depend on their
 * number. Also checks the debug file if @debug is not NULL.
 */
int me_verify_parallel(const struct mp_elf *original, const struct mp_elf *output,
		       const struct me_verify_debug *debug, unsigned int nr_threads,
		       struct me_verify_report *report, struct mp_err *err);

#endif
