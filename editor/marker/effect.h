// SPDX-License-Identifier: Apache-2.0
/*
 * effect - what one instruction reads and writes, for the search for code that serves only
 * markers. Decides nothing about liveness.
 */
#ifndef ME_EFFECT_H
#define ME_EFFECT_H

#include <Zydis/Zydis.h>

#include "editor/marker/marker.h"

/*
 * Sets of places that hold values: low bytes of general registers, by number; flags; xmm
 * registers; all other bytes of general registers.
 */
#define ME_PLACE_FLAG		   16 /* first flag: CF, PF, AF, ZF, SF, OF */
#define ME_PLACE_VECTOR		   24 /* xmm0 to xmm15 */
#define ME_PLACE_REST		   40
#define ME_PLACES_WHOLE(registers) ((uint64_t)(registers) | (uint64_t)(registers) << ME_PLACE_REST)
#define ME_PLACES_ALL		   UINT64_C(0x00ffffffff3fffff)
#define ME_PLACES_FLAGS		   UINT64_C(0x3f0000)

struct me_effect {
	uint64_t reads, sets, kills; /* @kills: of @sets, replaced in every case */
	uint32_t marker;	     /* whose memory the instruction accesses; UINT32_MAX: none */
	bool reads_marker, writes_marker;
	/* An address in a marker's memory that the instruction names in another way; 0: none. */
	uint64_t touches;
	/* Nothing but @sets and the marker's memory is written, nothing can fault, and control
	 * goes on behind the instruction. */
	bool pure;
};

/* Decodes the instruction at @bytes, whose address is @vaddr. An undecodable one reads all. */
void me_effect_of(const ZydisDecoder *decoder, const struct mp_elf *elf,
		  const struct me_markers *markers, const uint8_t *bytes, size_t avail,
		  uint64_t vaddr, struct me_effect *out);

#endif
