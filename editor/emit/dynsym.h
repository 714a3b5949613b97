// SPDX-License-Identifier: Apache-2.0
/*
 * dynsym - .dynsym of the output: the same symbols at the same places. A symbol gets
 * the copy's address if pointers to its function are redirected. Called by emit.
 */
#ifndef ME_DYNSYM_H
#define ME_DYNSYM_H

#include "editor/place/place.h"
#include "editor/evidence/redirect.h"
#include "editor/place/sections.h"

/*
 * me_dynsym_write - change the symbols in @image, the first @image_size bytes of the
 * output, which still hold the original's symbols. Return: number of symbols that got a
 * new value.
 */
uint32_t me_dynsym_write(const struct mp_cfg *cfg, const struct me_placement *placement,
			 const struct me_redirects *redirects, const struct me_sections *sections,
			 uint8_t *image, uint64_t image_size);

#endif
