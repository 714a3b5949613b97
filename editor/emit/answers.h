// SPDX-License-Identifier: Apache-2.0
/*
 * answers - writes the code that answers, for copies, which function encloses an address, and its table; and lets the
 * program's own questions lead there. evidence/enclosing decides in which files. Called by emit.
 */
#ifndef ME_ANSWERS_H
#define ME_ANSWERS_H

#include "editor/base/enclosing_code.h"
#include "editor/evidence/import_use.h"
#include "editor/place/place.h"

struct me_answers {
	struct me_import_use use;
	uint64_t vaddr, size; /* of code and table; 0: there are none */
	struct me_enclosing_entry *entries;
	uint32_t nr_entries;
};

/* me_answers_find - the table for copies that lie below @vaddr, where the code will be. Return: 0, -ENOMEM, -EPERM. */
int me_answers_find(const struct mp_cfg *cfg, const struct me_placement *placement,
		    const struct me_redirects *redirects, uint64_t vaddr, struct me_answers *out,
		    struct mp_err *err);
/* Writes code and table to @out, and the questions to @old_part, of [0, old_end) of the file. Return: 0, -EPERM. */
int me_answers_write(const struct mp_cfg *cfg, const struct me_answers *answers, uint8_t *out,
		     uint8_t *old_part, uint64_t old_end, struct mp_err *err);
void me_answers_fini(struct me_answers *answers);

#endif
