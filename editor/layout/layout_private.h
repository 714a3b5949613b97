// SPDX-License-Identifier: Apache-2.0
/*
 * layout_private - what layout.c shares with its parts. Only layout*.c include this header.
 */
#ifndef ME_LAYOUT_PRIVATE_H
#define ME_LAYOUT_PRIVATE_H

#include "editor/layout/layout.h"

#define ME_STAY 0xff /* beside enum me_zone: the block is not copied */

/*
 * me_split_zones - fill @zones[block] with enum me_zone or ME_STAY. Sets @keep[func], zeroed by the
 * caller, where too little evidence supports a new order of blocks.
 * Return: 0, -ENOMEM.
 */
int me_split_zones(const struct mp_cfg *cfg, const struct mp_counts *counts,
		   const uint8_t *eligible, const struct me_layout_options *options, uint8_t *zones,
		   uint8_t *keep);

/*
 * me_blocks_order - blocks of @func in @zone, as @order says; the entry comes first. @out holds func->nr_blocks. @old_way: bonus for keeping
 * a conditional branch's original fall-through, as a share of the block's executions; 0: no
 * bonus.
 * Return: 0, -ENOMEM.
 */
int me_blocks_order(const struct mp_cfg *cfg, const struct mp_counts *counts, uint32_t func,
		    const uint8_t *zones, enum me_zone zone, enum me_order order, double old_way,
		    uint32_t *out, uint32_t *nr_out);

/*
 * me_funcs_choose - the order of functions that made compilers fastest, where more code is hot than the first level of an
 * iTLB covers: by exact counts MP_ORDER_CDS; by samples MP_ORDER_ORIGINAL, since samples know few of the calls.
 * Less hot code: MP_ORDER_PH, the order of the paper. Documentation/lab/results.md has the times.
 */
enum mp_order me_funcs_choose(const struct mp_cfg *cfg, const struct mp_counts *counts,
			      const uint8_t *zones);

/*
 * me_funcs_order - the functions with a block in a zone, in the order that @order chooses. @out holds cfg->nr_funcs.
 * Return: 0, -ENOMEM.
 */
int me_funcs_order(const struct mp_cfg *cfg, const struct mp_counts *counts, const uint8_t *zones,
		   enum mp_order order, uint32_t *out, uint32_t *nr_out);

/*
 * me_lines_keep - mark runs and loops of @plan that should lie in few lines; call it when the order is final.
 * Return: 0, -ENOMEM.
 */
int me_lines_keep(const struct mp_cfg *cfg, const struct mp_counts *counts, uint8_t line_log2,
		  struct me_plan *plan);

/* me_tails_add - add clones of short ways out to @plan. Return: 0, -ENOMEM. */
int me_tails_add(const struct mp_cfg *cfg, const struct mp_counts *counts, struct me_plan *plan);

#endif
