// SPDX-License-Identifier: Apache-2.0
/* verify_version_tables - checks the jump tables of audited functions. */
#ifndef ME_VERIFY_VERSION_TABLES_H
#define ME_VERIFY_VERSION_TABLES_H

#include <stdbool.h>
#include <stdint.h>

#include "editor/verify/base/verify_context.h"

/* Check the jump tables of audited functions. Call after the versions were checked. */
int vf_check_version_tables(const struct vf *vf);
bool vf_is_version_table_section(const struct vf *vf, const struct mp_section *sec);
/* Does @vaddr lie in the tables that versions have for themselves? */
bool vf_is_in_version_tables(const struct vf *vf, uint64_t vaddr);

#endif
