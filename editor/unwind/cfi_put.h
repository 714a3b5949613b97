// SPDX-License-Identifier: Apache-2.0
/*
 * cfi_put - writes the call-frame instructions for a change of row. Called by unwind.
 */
#ifndef ME_CFI_PUT_H
#define ME_CFI_PUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "editor/base/bytes.h"
#include "libprof/elf/eh.h"
#include "libprof/unwind/cfi.h"

/* me_cfi_put_change - write instructions that turn row @from into row @to; both belong to @cie. */
void me_cfi_put_change(struct me_bytes *out, const struct mp_cfi_rules *rules,
		       const struct mp_eh_cie *cie, const struct mp_cfi_row *from,
		       const struct mp_cfi_row *to);
/* me_cfi_put_advance - write instructions that advance the location by @delta bytes. */
void me_cfi_put_advance(struct me_bytes *out, uint64_t delta);

/*
 * me_cfi_program_end - offset of the end of the last operation that is not DW_CFA_nop;
 * @size if the program cannot be read. *@set_loc: the program holds an address
 * (DW_CFA_set_loc), so it cannot be copied byte by byte.
 */
size_t me_cfi_program_end(const struct mp_eh_cie *cie, const uint8_t *program, size_t size,
			  bool *set_loc);

#endif
