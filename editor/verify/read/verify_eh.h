// SPDX-License-Identifier: Apache-2.0
/* verify_eh - reads CIEs and FDEs as an unwinder finds them. */
#ifndef ME_VERIFY_EH_H
#define ME_VERIFY_EH_H

#include <stdbool.h>
#include <stdint.h>

#include "editor/verify/base/verify_context.h"

/* Does the section hold the program's own words? The loader's tables and notes do not. */
bool vf_holds_words(const struct vf *vf, const struct mp_section *sec);
/* Read PT_GNU_EH_FRAME and the .eh_frame it names; without this header, the section .eh_frame.
 * @strict: @elf is an output, whose search table must list every FDE. */
int vf_eh_read(const struct vf *vf, const struct mp_elf *elf, bool strict, struct vf_eh *eh);
void vf_eh_fini(struct vf_eh *eh);
/*
 * Bytes of @fde's, or the CIE's, program without the no-ops at its end. Operands may end in zeros, too, so this reads
 * the program. If it is not understood, these are all bytes.
 */
uint32_t vf_program_size(const uint8_t *insns, uint32_t len);

#endif
