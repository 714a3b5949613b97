// SPDX-License-Identifier: Apache-2.0
/*
 * emit - from a plan to the bytes of an output file. Decides nothing about layout.
 * Called by optimize.
 *
 * Hot code is copied into one new segment. The original code stays in place, except for
 * patches that lead to the copies (Documentation/rewriting.md, "What an output looks like").
 */
#ifndef ME_EMIT_H
#define ME_EMIT_H

#include <stdint.h>

#include "editor/debug/debug.h"
#include "editor/place/output_parts.h"
#include "editor/emit/patch.h"
#include "editor/place/place.h"
#include "editor/plan.h"
#include "libprof/cfg/cfg.h"
#include "libprof/base/err.h"

struct me_emitted {
	struct me_output_parts output;
	struct me_output_parts debug_output; /* of its debug file; empty: it has none */
	struct me_patches patches;
	uint64_t text_bytes;	/* .morph.text */
	uint64_t hot_bytes;	/* size of the hot zone in .morph.text */
	uint64_t segment_bytes; /* the whole new segment: all of these and padding */
	uint64_t copies_bytes;	/* in .morph.text, without padding between copies */
	uint64_t eh_frame_bytes, lsda_bytes, map_bytes;
	uint64_t nr_inverted, nr_jumps_added, nr_jumps_dropped;
	uint64_t nr_via_slot; /* calls and jumps that do not go to their PLT stub any more */
	uint64_t nr_inlined;  /* calls that were replaced by the called function's instructions */
	uint32_t nr_fdes_new;
	uint32_t nr_redirected; /* functions whose address now is the copy's */
	struct me_debug_report debug;
	const char *slot_replaced; /* what the program header slot held before */
	uint64_t failed_at; /* code of the original that cannot be copied; 0: there is none */
};

/* One output while it is made. */
struct me_emitter;

/*
 * me_emitter_new - chooses the new segment, and the addresses in it of the copies of @plan and of the stubs in @added
 * (NULL: @plan has no stubs). @plan's blocks may be freed from then on; everything else must outlive the emitter.
 * Return: 0; -EPERM the file cannot be rewritten; -ENOMEM; -EBADMSG. Ownership: me_emitter_free(*@out).
 */
int me_emitter_new(const struct mp_cfg *cfg, const struct me_plan *plan,
		   const struct me_instrumentation *added, struct me_emitter **out,
		   struct mp_err *err);
/* The addresses of all copies. */
const struct me_placement *me_emitter_placement(const struct me_emitter *e);
/*
 * me_emitter_write - makes the output's bytes, once, and those of its debug file from @debug, that of the original; NULL:
 * none (an output with stubs has none). The output's .gnu_debuglink names it @name; NULL: its name in a tree of
 * build-ids, which lacks the build-id's first byte. debug_output points into @debug and into the parts of the output.
 * Return: 0; -EPERM the file cannot be rewritten, or @name is NULL and the output has no build-id; -ERANGE a
 * displacement does not fit; -ENOMEM; -EBADMSG. Where it names code that cannot be copied, @out has the address.
 * Ownership: me_emitted_fini(@out); parts of the output point into cfg->elf.
 */
int me_emitter_write(struct me_emitter *e, const struct mp_elf *debug, const char *name,
		     struct me_emitted *out, struct mp_err *err);
/* Takes NULL. */
void me_emitter_free(struct me_emitter *e);
void me_emitted_fini(struct me_emitted *emitted);

#endif
