// SPDX-License-Identifier: Apache-2.0
/*
 * debuginfo - reads DWARF through libdw; see debuginfo.h. Decides which compilation unit holds
 * an address. It uses the units' own ranges, because clang writes no .debug_aranges.
 */
#include "daemon/code/debuginfo.h"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <elfutils/libdwfl.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "libprof/base/search.h"

/* No compiler nests deeper. */
#define DEPTH_MAX 200

struct unit_range {
	uint64_t start, end; /* link-time */
	uint64_t bias;	     /* link-time address = address in the debug file + bias */
	Dwarf_Die die;
};

/* One range of one inlined call. */
struct call_range {
	uint64_t start, end; /* addresses in the debug file */
	unsigned int depth;
	struct md_inline call;
};

struct md_debuginfo {
	Dwfl *dwfl;
	Dwfl_Module *module;
	struct unit_range *units;
	size_t nr_units, max_units;
	/* cache: the function that was asked for last */
	Dwarf_Die func;
	bool has_func;
	struct call_range *calls;
	size_t nr_calls, max_calls;
};

static const Dwfl_Callbacks callbacks = {
	.find_elf = dwfl_build_id_find_elf,
	.find_debuginfo = dwfl_standard_find_debuginfo,
	.section_address = dwfl_offline_section_address,
};

/* Makes room for one more element of @size bytes. */
static bool grow(void **array, size_t nr, size_t *max, size_t size)
{
	size_t more = *max ? 2 * *max : 64;
	void *bigger;

	if (nr < *max)
		return true;
	bigger = realloc(*array, more * size);
	if (!bigger)
		return false;
	*array = bigger;
	*max = more;
	return true;
}

static int compare_units(const void *a, const void *b)
{
	const struct unit_range *x = a, *y = b;

	return (x->start > y->start) - (x->start < y->start);
}

static int list_units(struct md_debuginfo *di)
{
	Dwarf_Die *die = NULL;
	Dwarf_Addr bias, base, start, end;

	while ((die = dwfl_module_nextcu(di->module, die, &bias))) {
		ptrdiff_t at = 0;

		while ((at = dwarf_ranges(die, at, &base, &start, &end)) > 0) {
			if (start >= end)
				continue;
			if (!grow((void **)&di->units, di->nr_units, &di->max_units,
				  sizeof(*di->units)))
				return -ENOMEM;
			di->units[di->nr_units++] =
				(struct unit_range){start + bias, end + bias, bias, *die};
		}
	}
	if (di->nr_units)
		qsort(di->units, di->nr_units, sizeof(*di->units), compare_units);
	return 0;
}

int md_debuginfo_open(const char *path, struct md_debuginfo **out, struct mp_err *err)
{
	struct md_debuginfo *di = calloc(1, sizeof(*di));

	if (!di)
		return mp_err_set(err, ENOMEM, "out of memory");
	/* A report must not contact servers, so search only this machine. */
	unsetenv("DEBUGINFOD_URLS");
	di->dwfl = dwfl_begin(&callbacks);
	if (di->dwfl)
		di->module = dwfl_report_elf(di->dwfl, path, path, -1, 0, true);
	if (!di->module || dwfl_report_end(di->dwfl, NULL, NULL)) {
		md_debuginfo_close(di);
		return mp_err_set(err, ENOENT, "%s: %s", path, dwfl_errmsg(-1));
	}
	if (list_units(di)) {
		md_debuginfo_close(di);
		return mp_err_set(err, ENOMEM, "out of memory");
	}
	*out = di;
	return 0;
}

void md_debuginfo_close(struct md_debuginfo *di)
{
	if (!di)
		return;
	if (di->dwfl)
		dwfl_end(di->dwfl);
	free(di->units);
	free(di->calls);
	free(di);
}

bool md_debuginfo_has_lines(const struct md_debuginfo *di)
{
	return di->nr_units > 0;
}

static struct unit_range *find_unit(struct md_debuginfo *di, uint64_t vaddr)
{
	size_t low = mp_search(i, 0, di->nr_units, di->units[i].start <= vaddr);

	return low && vaddr < di->units[low - 1].end ? &di->units[low - 1] : NULL;
}

bool md_debuginfo_line(struct md_debuginfo *di, uint64_t vaddr, struct md_line *out)
{
	struct unit_range *unit = find_unit(di, vaddr);
	Dwarf_Line *line = unit ? dwarf_getsrc_die(&unit->die, vaddr - unit->bias) : NULL;

	if (!line || dwarf_lineno(line, &out->line) || out->line <= 0)
		return false;
	out->file = dwarf_linesrc(line, NULL, NULL);
	return out->file != NULL;
}

const char *md_debuginfo_directory(struct md_debuginfo *di, uint64_t vaddr)
{
	struct unit_range *unit = find_unit(di, vaddr);
	Dwarf_Attribute attr;

	if (!unit || !dwarf_attr(&unit->die, DW_AT_comp_dir, &attr))
		return NULL;
	return dwarf_formstring(&attr);
}

/* ---- inlined functions --------------------------------------------------------------------- */

/* Finds the function's definition, not a declaration or an inlined copy. */
static bool find_func(Dwarf_Die *parent, uint64_t pc, Dwarf_Die *out, unsigned int depth)
{
	Dwarf_Die die;

	if (depth > DEPTH_MAX || dwarf_child(parent, &die))
		return false;
	do {
		switch (dwarf_tag(&die)) {
		case DW_TAG_subprogram:
			if (dwarf_haspc(&die, pc) == 1) {
				*out = die;
				return true;
			}
			break;
		case DW_TAG_namespace:
		case DW_TAG_module:
		case DW_TAG_class_type:
		case DW_TAG_structure_type:
		case DW_TAG_union_type:
		case DW_TAG_lexical_block: break;
		default: continue;
		}
		if (find_func(&die, pc, out, depth + 1))
			return true;
	} while (!dwarf_siblingof(&die, &die));
	return false;
}

static const char *function_name(Dwarf_Die *die)
{
	Dwarf_Attribute attr;
	const char *name = NULL;

	if (dwarf_attr_integrate(die, DW_AT_linkage_name, &attr) ||
	    dwarf_attr_integrate(die, DW_AT_MIPS_linkage_name, &attr))
		name = dwarf_formstring(&attr);
	if (!name)
		name = dwarf_diename(die);
	return name ? name : "?";
}

static void read_call(Dwarf_Die *die, struct md_inline *out)
{
	Dwarf_Attribute attr;
	Dwarf_Word file = 0, line = 0;
	Dwarf_Files *files;
	Dwarf_Die unit;
	size_t nr;

	out->function = function_name(die);
	out->key = dwarf_dieoffset(die);
	if (!dwarf_attr(die, DW_AT_call_file, &attr) || dwarf_formudata(&attr, &file) ||
	    !dwarf_attr(die, DW_AT_call_line, &attr) || dwarf_formudata(&attr, &line) ||
	    !dwarf_diecu(die, &unit, NULL, NULL) || dwarf_getsrcfiles(&unit, &files, &nr) ||
	    file >= nr || line > INT32_MAX)
		return;
	out->call.file = dwarf_filesrc(files, file, NULL, NULL);
	out->call.line = (int)line;
}

static int list_calls(struct md_debuginfo *di, Dwarf_Die *parent, unsigned int depth,
		      unsigned int nested)
{
	Dwarf_Addr base, start, end;
	Dwarf_Die die;

	if (nested > DEPTH_MAX || dwarf_child(parent, &die))
		return 0;
	do {
		int tag = dwarf_tag(&die);
		bool inlined = tag == DW_TAG_inlined_subroutine;
		struct md_inline call = {0};
		ptrdiff_t at = 0;

		if (!inlined && tag != DW_TAG_lexical_block)
			continue;
		if (inlined)
			read_call(&die, &call);
		while (inlined && (at = dwarf_ranges(&die, at, &base, &start, &end)) > 0) {
			if (!grow((void **)&di->calls, di->nr_calls, &di->max_calls,
				  sizeof(*di->calls)))
				return -ENOMEM;
			di->calls[di->nr_calls++] = (struct call_range){start, end, depth, call};
		}
		if (list_calls(di, &die, depth + inlined, nested + 1))
			return -ENOMEM;
	} while (!dwarf_siblingof(&die, &die));
	return 0;
}

/* Return: the unit's tree in its .dwo file, or @unit if there is none. */
static Dwarf_Die tree_of(Dwarf_Die unit)
{
	Dwarf_Die split;
	uint8_t type;

	if (!dwarf_cu_info(unit.cu, NULL, &type, NULL, &split, NULL, NULL, NULL) &&
	    type == DW_UT_skeleton && split.cu)
		return split;
	return unit;
}

size_t md_debuginfo_inlines(struct md_debuginfo *di, uint64_t vaddr, struct md_inline *out,
			    size_t max)
{
	struct unit_range *unit = find_unit(di, vaddr);
	uint64_t pc;
	size_t nr = 0;

	if (!unit)
		return 0;
	pc = vaddr - unit->bias;
	if (!di->has_func || dwarf_haspc(&di->func, pc) != 1) {
		Dwarf_Die tree = tree_of(unit->die);

		di->nr_calls = 0;
		di->has_func = find_func(&tree, pc, &di->func, 0);
		if (!di->has_func || list_calls(di, &di->func, 0, 0))
			return 0;
	}
	/* The tree was walked from outside in, so depths ascend along each path. */
	for (size_t i = 0; i < di->nr_calls && nr < max; i++)
		if (pc >= di->calls[i].start && pc < di->calls[i].end && di->calls[i].depth == nr)
			out[nr++] = di->calls[i].call;
	return nr;
}

void md_debuginfo_each_symbol(struct md_debuginfo *di,
			      void (*visit)(void *ctx, const char *name, uint64_t vaddr,
					    uint64_t size),
			      void *ctx)
{
	int nr = dwfl_module_getsymtab(di->module);

	for (int i = 1; i < nr; i++) {
		GElf_Addr vaddr;
		GElf_Sym sym;
		const char *name =
			dwfl_module_getsym_info(di->module, i, &sym, &vaddr, NULL, NULL, NULL);

		if (name && name[0] && sym.st_shndx != SHN_UNDEF &&
		    (GELF_ST_TYPE(sym.st_info) == STT_FUNC ||
		     GELF_ST_TYPE(sym.st_info) == STT_GNU_IFUNC))
			visit(ctx, name, vaddr, sym.st_size);
	}
}
