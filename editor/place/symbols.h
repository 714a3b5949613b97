// SPDX-License-Identifier: Apache-2.0
/*
 * symbols - makes the output's .symtab, in which symbols of moved functions name the copies.
 *
 * foo names the copy of its entry, so profilers and debuggers show what runs. foo.morph.old
 * names the old code. foo.morph.warm names the part in the warm zone; if the entry is in that
 * zone, foo.morph.hot names the part in the hot zone. foo.morph.part names code in place of a call
 * in foo that lies apart from both. Names of Rust get ".llvm.0" to ".llvm.3" instead, which Rust's
 * traces leave out.
 */
#ifndef ME_SYMBOLS_H
#define ME_SYMBOLS_H

#include <stddef.h>
#include <stdint.h>

#include "editor/place/place.h"

struct me_symbols {
	uint8_t *symtab, *strtab;
	size_t symtab_size, strtab_size;
	uint32_t nr_locals; /* sh_info: index of the first global symbol */
};

/*
 * me_symbols_build - @symtab and @strtab are sections of @elf, the original or its debug file;
 * @section_index maps old to new section indexes, @text_section is the new index of .morph.text.
 * Return: 0, -ENOMEM, -EBADMSG. Ownership: me_symbols_fini(@out).
 */
int me_symbols_build(const struct mp_cfg *cfg, const struct me_placement *placement,
		     const struct mp_elf *elf, const struct mp_section *symtab,
		     const struct mp_section *strtab, const uint16_t *section_index,
		     uint16_t text_section, struct me_symbols *out, struct mp_err *err);
void me_symbols_fini(struct me_symbols *symbols);

#endif
