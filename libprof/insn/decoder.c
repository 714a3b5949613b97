// SPDX-License-Identifier: Apache-2.0
/*
 * decoder - keeps one Zydis decoder per thread. Called by insn, table_op and the editor's
 * table_form.
 */
#include "libprof/insn/decoder.h"

#include <stdbool.h>

const ZydisDecoder *mp_decoder(void)
{
	static _Thread_local ZydisDecoder decoder;
	static _Thread_local bool ready;

	if (!ready) {
		ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
		ready = true;
	}
	return &decoder;
}
