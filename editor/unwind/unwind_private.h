// SPDX-License-Identifier: Apache-2.0
/* unwind_private - types and functions that the parts of unwind share. No other file includes
 * this. */
#ifndef ME_UNWIND_PRIVATE_H
#define ME_UNWIND_PRIVATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "editor/base/bytes.h"
#include "editor/unwind/cfi_put.h"
#include "editor/unwind/lsda.h"
#include "editor/unwind/unwind.h"
#include "libprof/elf/eh.h"

/* One FDE of the original with its CIE, rows and LSDA. */
struct me_source {
	const struct mp_fde *listed; /* NULL: nothing was read yet */
	struct mp_eh_cie cie;
	struct mp_eh_fde fde;
	struct mp_cfi_table table;
	struct me_lsda lsda; /* only if fde.lsda is not 0 */
};

/* Read the FDE @listed into @source, which may be reused. Return: 0; -EPERM, with *@why: why its code
 * cannot move; -ENOMEM. */
int me_source_load(struct me_source *source, const struct mp_elf *elf, struct mp_cfi_rules *rules,
		   const struct mp_fde *listed, const char **why);
void me_source_fini(struct me_source *source);
/* Return: the FDE that holds @block, or NULL. @last: the previous block's, or NULL. */
const struct mp_fde *me_fde_of_block(const struct mp_elf *elf, const struct mp_block *block,
				     const struct mp_fde *last);

/*
 * me_row_compose - *@out: the row, in the calling function's terms, of an instruction that replaces a part of a call
 * whose row is @call. @row: the instruction's own in the called function; @raised: bytes by which the stack pointer is
 * higher than there. @cie: the calling function's. Return: 0, -EOPNOTSUPP: no row says so, -ENOMEM.
 */
int me_row_compose(struct mp_cfi_rules *rules, const struct mp_eh_cie *cie,
		   const struct mp_cfi_row *call, const struct mp_cfi_row *row, int64_t raised,
		   struct mp_cfi_row *out);

/* A new FDE: adjacent copies of one function with one CIE and LSDA. */
struct me_run {
	uint64_t start, size;
	uint64_t cie_vaddr;		  /* of the original's CIE */
	uint64_t lsda;			  /* vaddr of the new one, 0: none */
	size_t program_off, program_size; /* in me_runs.programs */
};

struct me_runs {
	struct me_run *runs;
	uint32_t nr, cap;
	struct me_bytes programs, lsdas;
	uint64_t failed_at; /* code for which no run could be built; 0: there is none */
};

int me_runs_build(const struct mp_cfg *cfg, const struct me_placed *placed, uint32_t nr_placed,
		  uint64_t lsda_vaddr, struct mp_cfi_rules *rules, struct me_runs *runs,
		  struct mp_err *err);
void me_runs_fini(struct me_runs *runs);

struct me_frame_entry {
	uint64_t start, size, fde_vaddr;
};

/* .eh_frame, .eh_frame_hdr and its entries. */
struct me_frames {
	struct me_bytes eh_frame, hdr;
	struct me_frame_entry *entries;
	uint32_t nr, cap;
};

/* Write all CIEs and FDEs of the original, then those of @runs, then those of the runtime at
 * @runtime and of the code at @answers, if these are not 0. */
int me_frames_build(const struct mp_elf *elf, const struct me_runs *runs, uint64_t vaddr,
		    uint64_t runtime, uint64_t answers, struct me_frames *frames,
		    struct mp_err *err);
/* Write @frames->hdr, to be loaded at @vaddr. Sorts the entries. */
int me_frames_put_hdr(struct me_frames *frames, uint64_t eh_frame_vaddr, uint64_t vaddr,
		      const struct mp_elf *elf, struct mp_err *err);
void me_frames_fini(struct me_frames *frames);

#endif
