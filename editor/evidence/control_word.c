// SPDX-License-Identifier: Apache-2.0
/* control_word - finds loads of control words, and their slots. Called by place. */
#include "editor/evidence/control_word.h"

#include <string.h>

#include <Zydis/Zydis.h>

#include "libprof/insn/decoder.h"
#include "libprof/insn/insn_quick.h"

static bool is_load(const ZydisDecodedInstruction *z)
{
	return z->mnemonic == ZYDIS_MNEMONIC_FLDCW || z->mnemonic == ZYDIS_MNEMONIC_LDMXCSR ||
	       z->mnemonic == ZYDIS_MNEMONIC_VLDMXCSR;
}

void me_control_loads_find(const struct mp_cfg *cfg, uint32_t block, struct me_control_loads *out)
{
	const struct mp_block *b = &cfg->blocks[block];
	const uint8_t *bytes = mp_elf_bytes(cfg->elf, b->vaddr, b->size);
	uint32_t len;

	out->nr = 0;
	/* Most blocks have neither of the two opcodes. */
	if (!bytes || b->size > UINT16_MAX ||
	    (!memchr(bytes, 0xd9, b->size) && !memchr(bytes, 0xae, b->size)))
		return;
	for (uint32_t off = 0; off < b->size && out->nr < ME_CONTROL_LOADS_MAX; off += len) {
		ZydisDecodedInstruction z;
		struct mp_insn insn;

		/* The quick decoder knows none of these loads. */
		if (mp_insn_decode_quick(bytes + off, b->size - off, 0, &insn)) {
			len = insn.len;
			continue;
		}
		if (ZYAN_FAILED(ZydisDecoderDecodeInstruction(mp_decoder(), NULL, bytes + off,
							      b->size - off, &z)))
			return;
		len = z.length;
		if (is_load(&z))
			out->at[out->nr++] = (uint16_t)off;
	}
}

/* Found by trying 57,000 pairs of addresses in a page: no pair differs. */
uint32_t me_control_load_slot(uint64_t vaddr)
{
	uint64_t slot = vaddr & 31;

	for (int bit = 0; bit < 5; bit++) /* bits 9 to 5, in the opposite order */
		slot ^= (vaddr >> (9 - bit) & 1) << bit;
	return (uint32_t)(slot ^ (vaddr >> 10 & 1) << 3 ^ (vaddr >> 11 & 1) << 4);
}
