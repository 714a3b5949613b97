// SPDX-License-Identifier: Apache-2.0
/* verify_count - checks what an instrumented output has in addition. */
#ifndef ME_VERIFY_COUNT_H
#define ME_VERIFY_COUNT_H

#include <stdbool.h>

#include "editor/verify/base/verify_context.h"
#include "libprof/elf/elf.h"

/* Find the counters and the runtime of an instrumented output. */
void vf_find_counters(struct vf *vf);
/* Is header @b header @a, extended by the counters? */
bool vf_is_phdr_with_counters(const struct vf *vf, const Elf64_Phdr *a, const Elf64_Phdr *b);
/* Is @sec one of the sections that only an instrumented output has? */
bool vf_is_counter_section(const struct vf *vf, const struct mp_section *sec);
/* Check that the runtime runs first and then continues where the original started. */
int vf_read_start(struct vf *vf);
/* Call after all stubs were checked: has each counter a stub? */
bool vf_all_are_counted(const struct vf *vf);
/* Check the stub @p: it counts, sets a register or waits, then continues at its block. */
int vf_check_stub(const struct vf *vf, const struct mp_map_piece *p);

#endif
