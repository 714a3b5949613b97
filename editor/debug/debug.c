// SPDX-License-Identifier: Apache-2.0
/*
 * debug - opens the sections, extends every unit and then the indexes. Decides which
 * sections are read. Called by emit.
 */
#include "editor/debug/debug.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "editor/debug/debug_callee.h"
#include "editor/debug/debug_index.h"
#include "editor/debug/debug_unit.h"
#include "libprof/base/clock.h"

struct me_debug {
	struct me_debug_sections file;
	struct me_moves moves;
};

struct name {
	const char *name;
	size_t section; /* offset in struct me_debug_sections */
};

#define SECTION(member) offsetof(struct me_debug_sections, member)

static const struct name names[] = {
	{".debug_info", SECTION(info)},		{".debug_abbrev", SECTION(abbrev)},
	{".debug_line", SECTION(line)},		{".debug_ranges", SECTION(ranges)},
	{".debug_rnglists", SECTION(rnglists)}, {".debug_loc", SECTION(loc)},
	{".debug_loclists", SECTION(loclists)}, {".debug_addr", SECTION(addr)},
	{".debug_aranges", SECTION(aranges)},	{".gdb_index", SECTION(gdb_index)},
	{".debug_line_str", SECTION(line_str)}, {".debug_str_offsets", SECTION(str_offsets)},
	{".debug_str", SECTION(str)},
};

#define NR_SECTIONS (sizeof(names) / sizeof(names[0]))

static struct me_debug_section *section(struct me_debug_sections *file, size_t i)
{
	return (struct me_debug_section *)((char *)file + names[i].section);
}

/* Strings are needed for inlined calls only. */
static bool is_string_section(const struct me_debug_sections *file,
			      const struct me_debug_section *s)
{
	return s == &file->line_str || s == &file->str || s == &file->str_offsets;
}

static int open_sections(struct me_debug_sections *file, const struct mp_elf *elf)
{
	for (size_t i = 0; i < NR_SECTIONS; i++) {
		struct me_debug_section *s = section(file, i);
		int rc;

		if (is_string_section(file, s) && !file->inlined.nr)
			continue;
		rc = me_debug_section_open(elf, names[i].name, s);
		if (rc == -EPERM && is_string_section(file, s)) {
			me_debug_section_fini(s);
			continue;
		}
		if (rc)
			return rc;
	}
	return 0;
}

/*
 * Limits the work for files in which many references lead to one long list. All other data is read
 * only a few times.
 */
static uint64_t fair_budget(struct me_debug_sections *file)
{
	uint64_t bytes = 0;

	for (size_t i = 0; i < NR_SECTIONS; i++)
		bytes += section(file, i)->size;
	return 16 * bytes + (1 << 20);
}

static int extend_units(struct me_debug_sections *file)
{
	uint64_t next;

	for (uint64_t off = 0; off < file->info.size; off = next) {
		int rc = me_unit_extend(file, off, &next);

		if (rc)
			return rc;
		if (!next)
			break;
	}
	return 0;
}

static int build(struct me_debug *debug, const struct mp_elf *elf, struct me_debug_report *report)
{
	struct me_debug_sections *file = &debug->file;
	bool takes_units;
	int rc = open_sections(file, elf);

	if (rc == -EPERM) {
		report->nr_left = report->nr_units = 1;
		report->why = "their sections are compressed or laid out in an unsupported way";
		return 0;
	}
	if (rc)
		return rc;
	file->budget = fair_budget(file);
	rc = me_gdb_index_takes_units(file, &takes_units);
	file->has_names = !takes_units || mp_elf_section(elf, ".debug_names");
	if (!rc)
		rc = me_callees_find(file);
	if (!rc)
		rc = extend_units(file);
	if (!rc)
		rc = me_aranges_extend(file);
	if (!rc)
		rc = me_gdb_index_extend(file);
	report->nr_units = file->nr_units;
	report->nr_extended = file->nr_extended;
	report->nr_left = file->nr_left;
	report->nr_scopes = file->nr_scopes;
	report->nr_scopes_left = file->nr_scopes_left;
	report->nr_inlined = file->nr_described;
	report->nr_inlined_left = file->inlined.nr - file->nr_described;
	report->why = file->why;
	return rc;
}

/* Find or add the output's sections. A file without lists of ranges may need one. */
static int find_places(struct me_debug_sections *file, struct me_sections *sections)
{
	for (size_t i = 0; i < NR_SECTIONS; i++) {
		struct me_debug_section *s = section(file, i);
		uint32_t index;
		int rc;

		if (!me_debug_section_changed(s))
			continue;
		if (s->index) {
			s->new_index = sections->index[s->index];
			continue;
		}
		rc = me_sections_append(sections, names[i].name, SHT_PROGBITS, &index);
		if (rc)
			return rc;
		s->new_index = index;
	}
	return 0;
}

int me_debug_build(const struct mp_cfg *cfg, const struct me_placement *placement,
		   const struct mp_elf *elf, struct me_sections *sections, struct me_debug **out,
		   struct me_debug_report *report, struct mp_err *err)
{
	double start_s = mp_now_s(), start_cpu_s = mp_clock_s(CLOCK_PROCESS_CPUTIME_ID);
	struct me_debug *debug;
	int rc;

	*out = NULL;
	*report = (struct me_debug_report){.present = mp_elf_section(elf, ".debug_info") ||
						      mp_elf_section(elf, ".zdebug_info")};
	report->elsewhere = !report->present && mp_elf_section(elf, ".gnu_debuglink");
	if (!report->present)
		return 0;
	debug = calloc(1, sizeof(*debug));
	if (!debug)
		return mp_err_set(err, ENOMEM, "out of memory");
	debug->file.moves = &debug->moves;
	rc = me_moves_init(&debug->moves, cfg, placement);
	if (!rc)
		rc = me_inlined_init(&debug->file.inlined, cfg, placement);
	if (!rc)
		rc = build(debug, elf, report);
	if (!rc)
		rc = find_places(&debug->file, sections);
	report->seconds = mp_now_s() - start_s;
	report->cpu_seconds = mp_clock_s(CLOCK_PROCESS_CPUTIME_ID) - start_cpu_s;
	if (rc) {
		me_debug_free(debug);
		return mp_err_code(err, -rc);
	}
	*out = debug;
	return 0;
}

int me_debug_put(struct me_debug *debug, uint32_t index, Elf64_Shdr *header,
		 struct me_output_parts *output)
{
	for (size_t i = 0; debug && i < NR_SECTIONS; i++) {
		struct me_debug_section *s = section(&debug->file, i);

		if (s->new_index == index) {
			int rc = me_debug_section_put(s, header, output);

			return rc ? rc : 1;
		}
	}
	return 0;
}

void me_debug_free(struct me_debug *debug)
{
	if (!debug)
		return;
	for (size_t i = 0; i < NR_SECTIONS; i++)
		me_debug_section_fini(section(&debug->file, i));
	me_abbrevs_fini(&debug->file.abbrevs);
	me_ranges_fini(&debug->file.old);
	me_ranges_fini(&debug->file.new);
	me_ranges_fini(&debug->file.changing);
	free(debug->file.line_moves);
	free(debug->file.extended);
	for (uint32_t i = 0; i < debug->file.nr_added; i++)
		me_ranges_fini(&debug->file.added[i].ranges);
	free(debug->file.added);
	me_inlined_fini(&debug->file.inlined);
	me_moves_fini(&debug->moves);
	free(debug);
}
