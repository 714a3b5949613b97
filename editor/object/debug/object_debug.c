// SPDX-License-Identifier: Apache-2.0
/*
 * object_debug - debug information follows the code of an object. Finds the sections, and calls the
 * steps. Called by object.
 *
 * Anything that is not understood refuses the object: lines and variables are right, or the object
 * stays as it is.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "editor/object/debug/object_debug_private.h"

static int find_section(struct me_odebug *d, const char *name, uint32_t *section)
{
	const struct mp_relobj *in = d->o->in;

	*section = 0;
	for (uint32_t i = 1; i < in->nr_sections; i++) {
		if (strcmp(in->sections[i].name, name) || !me_object_is_debug(&in->sections[i]))
			continue;
		if (*section)
			return me_odebug_refuse(d, "has a section twice");
		*section = i;
	}
	return 0;
}

static int check_sections(struct me_odebug *d)
{
	const struct mp_relobj *in = d->o->in;

	for (uint32_t i = 1; i < in->nr_sections; i++) {
		const struct mp_relobj_section *s = &in->sections[i];
		size_t len = strlen(s->name);

		if (s->header.sh_flags & SHF_COMPRESSED)
			return me_odebug_refuse(
				d, "is compressed (objcopy --decompress-debug-sections)");
		if (!strcmp(s->name, ".debug_frame") && s->nr_relocs)
			return me_odebug_refuse(d, "has unwind information of its own");
		if (len > 4 && !strcmp(s->name + len - 4, ".dwo"))
			return me_odebug_refuse(d, "is split (-gsplit-dwarf)");
	}
	return 0;
}

static int find_sections(struct me_odebug *d)
{
	static const char *const names[ME_OLISTS_NR] = {".debug_ranges", ".debug_loc",
							".debug_rnglists", ".debug_loclists"};
	int rc = check_sections(d);

	if (!rc)
		rc = find_section(d, ".debug_line", &d->line);
	if (!rc)
		rc = find_section(d, ".debug_abbrev", &d->abbrev);
	if (!rc)
		rc = find_section(d, ".debug_addr", &d->addr);
	if (!rc)
		rc = find_section(d, ".debug_aranges", &d->aranges);
	for (int i = 0; !rc && i < ME_OLISTS_NR; i++)
		rc = find_section(d, names[i], &d->lists[i].section);
	for (uint32_t i = 1; i < d->o->nr_locals; i++)
		for (int k = 0; k < ME_OLISTS_NR; k++)
			if (ELF64_ST_TYPE(d->o->in->symbols[i].st_info) == STT_SECTION &&
			    d->lists[k].section &&
			    d->o->in->symbols[i].st_shndx == d->lists[k].section)
				d->lists[k].symbol = i;
	for (int k = 0; k < 2; k++) {
		struct me_olists *lists = &d->lists[k ? ME_OLISTS_RNGLISTS : ME_OLISTS_RANGES];

		if (!lists->symbol)
			lists->symbol = d->o->lists[k].symbol;
	}
	return rc;
}

/* All relocations of sections that are not written anew lead to what they led to. */
static int put_rest(struct me_odebug *d)
{
	const struct me_object *o = d->o;
	int rc = 0;

	for (uint32_t i = 1; !rc && i < o->in->nr_sections; i++) {
		const struct mp_relobj_section *s = &o->in->sections[i];

		if (!me_object_is_debug(s) || o->debug[i].written)
			continue;
		me_bytes_put(&o->debug[i].bytes, s->data, s->data ? s->header.sh_size : 0);
		o->debug[i].written = true;
		rc = me_odebug_put_relocs(d, i, 0, s->header.sh_size, 0, false,
					  &o->debug[i].relocs);
	}
	return rc;
}

/* Lists go to their sections, old or added. Return: 0. */
static int put_lists(struct me_odebug *d)
{
	for (int k = 0; k < ME_OLISTS_NR; k++) {
		struct me_olists *lists = &d->lists[k];
		struct me_odebug_section *to = &d->o->debug[lists->section];

		if (k == ME_OLISTS_RANGES && !lists->section)
			to = &d->o->lists[0].made;
		if (k == ME_OLISTS_RNGLISTS && !lists->section)
			to = &d->o->lists[1].made;
		if (to == &d->o->debug[0])
			continue;
		*to = (struct me_odebug_section){lists->bytes, lists->relocs, true};
		lists->bytes = lists->relocs = (struct me_bytes){0};
	}
	return 0;
}

static int (*const steps[])(struct me_odebug *) = {
	find_sections,	      me_odebug_code,	     me_odebug_lines,	me_odebug_units,
	me_odebug_find_split, me_odebug_put_abbrevs, me_odebug_entries, put_lists,
	me_odebug_addrs,      me_odebug_aranges,     put_rest};

static int run(struct me_odebug *d)
{
	int rc = 0;

	for (size_t i = 0; !rc && i < sizeof(steps) / sizeof(steps[0]); i++)
		rc = steps[i](d);
	return rc;
}

static void fini(struct me_odebug *d)
{
	for (uint32_t i = 0; i < d->nr_abbrevs; i++)
		me_abbrevs_fini(&d->abbrevs[i].abbrevs);
	for (int k = 0; k < ME_OLISTS_NR; k++) {
		me_bytes_fini(&d->lists[k].bytes);
		me_bytes_fini(&d->lists[k].relocs);
	}
	free(d->abbrevs);
	free(d->units);
	free(d->uses);
	free(d->lines.list);
	free(d->tables.list);
	free(d->first_owned);
	free(d->owned);
	free(d->reached);
	free(d->now.list);
	free(d->more.list);
}

int me_object_debug(struct me_object *o, struct mp_err *err)
{
	struct me_odebug d = {.o = o, .err = err};
	bool any = false;
	int rc;

	for (uint32_t i = 1; i < o->in->nr_sections; i++)
		any |= me_object_is_debug(&o->in->sections[i]);
	if (!any)
		return 0;
	o->debug = calloc(o->in->nr_sections, sizeof(*o->debug));
	rc = o->debug ? run(&d) : me_odebug_no_memory(&d);
	for (uint32_t i = 0; !rc && i < o->in->nr_sections; i++)
		if (o->debug[i].bytes.failed || o->debug[i].relocs.failed)
			rc = me_odebug_no_memory(&d);
	fini(&d);
	return rc;
}
