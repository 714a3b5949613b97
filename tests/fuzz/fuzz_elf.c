// SPDX-License-Identifier: Apache-2.0
/*
 * fuzz_elf - any bytes as an ELF file: refused, or every lookup and every unwind entry works.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "editor/unwind/cfi_put.h"
#include "editor/unwind/lsda.h"
#include "libprof/elf/eh.h"
#include "libprof/note/map.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void use_lookups(const struct mp_elf *elf)
{
	uint64_t value = 0;
	uint32_t n;

	for (uint32_t i = 0; i < elf->nr_sections; i++) {
		const struct mp_section *sec = &elf->sections[i];

		value += strlen(sec->name);
		if (mp_elf_section_at(elf, sec->vaddr))
			value++;
		if (sec->type != SHT_NOBITS && sec->size)
			value += elf->data[sec->off] + elf->data[sec->off + sec->size - 1];
		mp_elf_relocs_in(elf, sec->vaddr, sec->vaddr + sec->size, &n);
	}
	for (uint32_t i = 0; i < elf->nr_symbols; i++) {
		const uint8_t *bytes = mp_elf_bytes(elf, elf->symbols[i].vaddr, 4);

		value += strlen(elf->symbols[i].name) + (bytes ? bytes[3] : 0);
		mp_elf_is_readonly(elf, elf->symbols[i].vaddr);
		mp_elf_vaddr_to_off(elf, elf->symbols[i].vaddr, &value);
	}
	mp_elf_off_to_vaddr(elf, value, &value);
	mp_elf_text_size(elf);
}

static void use_fdes(const struct mp_elf *elf)
{
	struct mp_cfi_table table = {0};
	struct mp_cfi_rules rules;
	struct me_bytes out = {0};
	struct me_lsda lsda = {0};
	const char *why;
	struct mp_eh_cie cie;
	struct mp_eh_fde fde;

	if (mp_cfi_rules_init(&rules))
		return;
	for (uint32_t i = 0; i < elf->nr_fdes; i++) {
		bool set_loc;

		if (mp_eh_read_fde(elf, elf->fdes[i].fde_vaddr, &cie, &fde))
			abort(); /* it could be read before */
		me_cfi_program_end(&cie, fde.program, fde.program_size, &set_loc);
		if (!mp_cfi_expand(&rules, &cie, &fde, &table)) {
			for (uint32_t k = 0; k < table.nr; k++)
				me_cfi_put_change(&out, &rules, &cie, &table.initial,
						  &table.lines[k].row);
			out.size = 0;
		}
		if (fde.lsda && !me_lsda_read(elf, fde.lsda, fde.start, fde.size, &lsda, &why)) {
			me_lsda_put(&out, 0x1000, &lsda, lsda.sites, lsda.nr_sites, fde.start);
			out.size = 0;
		}
	}
	me_bytes_fini(&out);
	me_lsda_fini(&lsda);
	mp_cfi_table_fini(&table);
	mp_cfi_rules_fini(&rules);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct mp_err err;
	struct mp_elf *elf;
	struct mp_map *map;

	if (mp_elf_open_memory("fuzz", data, size, MP_ELF_ALL, &elf, &err))
		return 0;
	use_lookups(elf);
	use_fdes(elf);
	if (!mp_map_read(elf, &map, &err)) {
		mp_map_original(map, size);
		mp_map_free(map);
	}
	mp_elf_close(elf);
	return 0;
}
