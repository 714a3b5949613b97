// SPDX-License-Identifier: Apache-2.0
/*
 * verify_eh_startup - finds the operands by which a static program's start-up code names its
 * .eh_frame, without relocations. It goes by the bytes of the code; eh_startup, which emit
 * uses, decodes them. Called by verify_diff.
 */
#include <string.h>

#include "editor/verify/base/verify_context.h"
#include "editor/verify/base/verify_fde.h"
#include "editor/verify/read/verify_eh_startup.h"

enum {
	LOOK = 80, /* bytes read from the start of the function */
};

static uint32_t word_at(const uint8_t *bytes)
{
	uint32_t word;

	memcpy(&word, bytes, sizeof(word));
	return word;
}

/* test %rax, %rax; je +N, perhaps with mov %rsp, %rbp between. Return: offset of N; 0: other code. */
static uint32_t find_je(const uint8_t *code)
{
	static const uint8_t test[] = {0x48, 0x85, 0xc0}, frame[] = {0x48, 0x89, 0xe5};
	uint32_t at = sizeof(test);

	if (memcmp(code, test, sizeof(test)))
		return 0;
	if (!memcmp(code + at, frame, sizeof(frame)))
		at += sizeof(frame);
	return code[at] == 0x74 ? at + 1 : 0;
}

/* mov $F, %eax; test %rax, %rax; je +N, and within those N bytes mov $LABEL, %edi; call F. */
static uint64_t find_in_function(const struct vf *vf, uint64_t start, uint32_t *label)
{
	const uint8_t *code = mp_elf_bytes(vf->o, start, LOOK);

	for (uint32_t i = 0; code && i + 13 < LOOK; i++) {
		uint32_t je = code[i] == 0xb8 ? find_je(code + i + 5) : 0, next, end, at = 0;

		if (!je)
			continue;
		next = i + 5 + je + 1;
		end = next + code[next - 1];
		for (uint32_t k = next; k + 5 <= end && k + 5 <= LOOK; k++) {
			uint64_t to = start + k + 5 + (uint64_t)(int32_t)word_at(code + k + 1);

			if (code[k] == 0xbf && !at &&
			    word_at(code + k + 1) - vf->old.eh.vaddr < vf->old.eh.size) {
				at = k + 1;
				k += 4;
			} else if (code[k] == 0xe8 && at && to == word_at(code + i + 1)) {
				*label = word_at(code + at);
				return start + at;
			}
		}
		return 0;
	}
	return 0;
}

static uint64_t find_in_array(const struct vf *vf, const char *name, uint32_t *label)
{
	const struct mp_section *array = mp_elf_section(vf->o, name);
	const uint8_t *words = array ? mp_elf_bytes(vf->o, array->vaddr, array->size) : NULL;
	uint64_t start, field = 0;

	for (uint64_t off = 0; words && off + 8 <= array->size; off += 8) {
		uint64_t found;
		uint32_t named;

		memcpy(&start, words + off, sizeof(start));
		found = vf_is_text(vf, start) ? find_in_function(vf, start, &named) : 0;
		if (!found)
			continue;
		if (field)
			return 0;
		field = found;
		*label = named;
	}
	return field;
}

void vf_find_eh_fields(struct vf *vf)
{
	uint32_t label = 0, back = 0;
	uint64_t init = find_in_array(vf, ".init_array", &label);
	uint64_t fini = find_in_array(vf, ".fini_array", &back);

	/* A function with an FDE might be moved, and its copy would name .eh_frame, too. */
	if (!init || !fini || label != back || vf_eh_find(&vf->old.eh, init) ||
	    vf_eh_find(&vf->old.eh, fini))
		return;
	vf->now.eh_label = label;
	vf->now.eh_fields[0] = init;
	vf->now.eh_fields[1] = fini;
}
