// SPDX-License-Identifier: Apache-2.0
/*
 * control_word - instructions that load a control word: fldcw (of the x87 unit) and ldmxcsr (of
 * SSE). A processor predicts which value each of them loads; a wrong prediction takes some hundred
 * cycles. AMD's Zen 4 keeps the predictions in a table of 32 slots, and the slot follows from the
 * instruction's address. Two loads of different values that share a slot are mispredicted each
 * time: sqlite's conversion of numbers to text ran eight times slower at such addresses.
 * Documentation/lab/results.md, "Loads of control words", has the measurement.
 */
#ifndef ME_CONTROL_WORD_H
#define ME_CONTROL_WORD_H

#include <stdint.h>

#include "libprof/cfg/cfg.h"

#define ME_CONTROL_LOADS_MAX  6
#define ME_CONTROL_LOAD_SLOTS 32

/* Offsets in the block of the first byte of each such instruction. */
struct me_control_loads {
	uint16_t at[ME_CONTROL_LOADS_MAX];
	uint8_t nr;
};

/* me_control_loads_find - the first ME_CONTROL_LOADS_MAX of them in @block. */
void me_control_loads_find(const struct mp_cfg *cfg, uint32_t block, struct me_control_loads *out);

/*
 * me_control_load_slot - the slot, below ME_CONTROL_LOAD_SLOTS, of an instruction at @vaddr. Of two
 * instructions in one page of 4,096 bytes, the slots tell whether they share one. In different
 * pages it depends on the physical pages, too.
 */
uint32_t me_control_load_slot(uint64_t vaddr);

#endif
