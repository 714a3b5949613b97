// SPDX-License-Identifier: Apache-2.0
/*
 * patch - leads control from old code and data to the copies: writes jumps over old block
 * starts; changes calls and branches of old code, entries of jump tables, pointers to
 * functions.
 *
 * Works on @image, a private copy of the file's bytes [0, image_size), at their file offsets.
 */
#ifndef ME_PATCH_H
#define ME_PATCH_H

#include <stdint.h>

#include "editor/place/place.h"

/* Packed: large programs have millions of them. */
struct me_patch {
	uint64_t vaddr : 56;
	uint64_t size : 8;
};

struct me_patches {
	struct me_patch *patches; /* jumps written over old block starts, ascending vaddr */
	uint32_t nr_patches;
	uint64_t nr_unpatched; /* copied blocks whose old start had to stay */
	uint64_t nr_entries_open; /* of these: functions that run on in old code where others call them */
	uint64_t nr_retargeted, nr_table_entries, nr_pointers;
	uint64_t nr_tables_kept; /* tables of copied jumps that still lead to old code */
};

/* Return: 0, -ENOMEM, -ERANGE. Ownership: me_patches_fini(@out). */
int me_patch_image(const struct mp_cfg *cfg, const struct me_placement *placement,
		   const struct me_redirects *redirects, uint8_t *image, uint64_t image_size,
		   struct me_patches *out, struct mp_err *err);
/*
 * me_patch_eh_frame - lead the code's references to the old .eh_frame to @vaddr: a static
 * program without PT_GNU_EH_FRAME passes its address to the unwinder. Relocations tell where;
 * without them eh_startup does.
 * Return: 0, -EPERM there is no such reference, or it cannot be changed.
 */
int me_patch_eh_frame(const struct mp_cfg *cfg, uint8_t *image, uint64_t image_size, uint64_t vaddr,
		      struct mp_err *err);
void me_patches_fini(struct me_patches *patches);

#endif
