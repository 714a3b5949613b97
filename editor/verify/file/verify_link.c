// SPDX-License-Identifier: Apache-2.0
/*
 * verify_link - the link from the output to its debug file, and notes that both files have.
 */
#include <string.h>
#include <zlib.h>

#include "editor/verify/base/verify_context.h"
#include "editor/verify/base/verify_own.h"
#include "editor/verify/base/verify_refuse.h"
#include "editor/verify/file/verify_link.h"

#define LINK ".gnu_debuglink"

bool vf_is_link(const struct vf *vf, const struct mp_section *sec)
{
	return vf->debug && !strcmp(sec->name, LINK) && sec->type == SHT_PROGBITS && !sec->flags &&
	       !sec->vaddr && !sec->link && !sec->info && !sec->entsize;
}

/* The section holds a name, zeros up to a multiple of four bytes, the checksum. */
int vf_check_link(const struct vf *vf)
{
	const struct mp_section *sec = mp_elf_section(vf->n, LINK);
	const struct mp_elf *debug = vf->debug ? vf->debug->output : NULL;
	size_t len, at;
	uint32_t crc, zero = 0;
	const uint8_t *p;

	if (!debug)
		return 0;
	len = strlen(vf->debug->name);
	at = (len + 4) & ~(size_t)3;
	crc = (uint32_t)crc32_z(0, debug->data, debug->size);
	if (!sec || !vf_is_link(vf, sec) || sec->size != at + sizeof(crc))
		return vf_refuse(vf, 0, "no " LINK " leads to the debug file");
	p = vf->n->data + sec->off;
	if (memcmp(p, vf->debug->name, len) || memcmp(p + len, &zero, at - len) ||
	    memcmp(p + at, &crc, sizeof(crc)))
		return vf_refuse(vf, 0, LINK " does not match the debug file");
	vf_own(vf, sec->off, sec->size, ME_OWNER_LINK);
	return 0;
}

/* The build-id must be the output's own; other notes must not have changed. */
int vf_check_kept_note(const struct vf *vf, const struct mp_section *a, const struct mp_section *b)
{
	const struct mp_section *own = mp_elf_section(vf->program, a->name);
	const uint8_t *want = vf->o->data + a->off;

	if (!strcmp(a->name, ".note.gnu.build-id")) {
		if (!own || own->type != SHT_NOTE || own->size != a->size)
			return vf_refuse(vf, a->vaddr, "the program has no such build-id");
		want = vf->program->data + own->off;
	}
	if (memcmp(want, vf->n->data + b->off, b->size))
		return vf_refuse(vf, a->vaddr, "contents of section %.40s changed", a->name);
	vf_own(vf, b->off, b->size, ME_OWNER_KEPT);
	return 0;
}
