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
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "libprof/base/grow.h"
#include "libprof/base/search.h"

/* No compiler nests deeper. */
#define DEPTH_MAX 200

/* Which block of its line holds an inlined call; elfutils 0.188 does not name this extension. */
#define AT_GNU_DISCRIMINATOR 0x2136

struct unit_range {
	uint64_t start, end; /* link-time */
	uint64_t bias;	     /* link-time address = address in the debug file + bias */
	Dwarf_Die die;
};

/* One range of a function of the unit that was asked for last. */
struct func_range {
	uint64_t start, end; /* addresses in the debug file */
	size_t order;	     /* position in the tree */
	Dwarf_Die die;
};

/* One range of one inlined call. */
struct call_range {
	uint64_t start, end; /* addresses in the debug file */
	unsigned int depth;
	size_t next; /* where to go on if the range does not hold an address: behind the call's own calls */
	struct md_inline call;
};

struct md_debuginfo {
	Dwfl *dwfl;
	Dwfl_Module *module;
	struct unit_range *units;
	size_t nr_units, max_units;
	/* cache: the unit that was asked for last, and all of its functions by address */
	struct unit_range *unit;
	const char *producer;
	struct func_range *funcs;
	size_t nr_funcs, max_funcs;
	/* cache: the function that was asked for last */
	Dwarf_Die func;
	bool has_func;
	struct call_range *calls;
	size_t nr_calls, max_calls;
	const char *visited; /* entry of a tree that was visited last, in the file's bytes */
	int fault;	     /* see md_debuginfo_fault() */
};

/* Keeps the first fault. Return: @r. */
static int note(struct md_debuginfo *di, int r)
{
	di->fault = di->fault ? di->fault : r;
	return r;
}

/* Return: the failure of the machine that libdw met, and only errno tells; 0: none. */
static int failed(void)
{
	return errno && mp_err_is_failure(-errno) ? -errno : 0;
}

/* Call it where libdw could not read something. */
static void note_unread(struct md_debuginfo *di)
{
	int r = failed();

	note(di, r ? r : -EBADMSG);
}

/*
 * A tree is visited in the order of the file. An attribute may call the first child the next sibling, too, which would
 * double the visits at each level.
 */
static int enter(struct md_debuginfo *di, const Dwarf_Die *die)
{
	const char *at = die->addr;

	if (at <= di->visited)
		return note(di, -EBADMSG);
	di->visited = at;
	return 0;
}

/* libdw's functions return -1 if they cannot read what is there. Return: true: @got is 0. */
static bool found(struct md_debuginfo *di, int got)
{
	if (got < 0)
		note_unread(di);
	return got == 0;
}

static const Dwfl_Callbacks callbacks = {
	.find_elf = dwfl_build_id_find_elf,
	.find_debuginfo = dwfl_standard_find_debuginfo,
	.section_address = dwfl_offline_section_address,
};

static int compare_units(const void *a, const void *b)
{
	const struct unit_range *x = a, *y = b;

	return (x->start > y->start) - (x->start < y->start);
}

static int list_units(struct md_debuginfo *di)
{
	Dwarf_Die *die = NULL;
	Dwarf_Addr bias, base, start, end;

	if (!dwfl_module_getdwarf(di->module, &bias))
		return failed(); /* or no debug information */
	dwfl_errno();
	while ((die = dwfl_module_nextcu(di->module, die, &bias))) {
		ptrdiff_t at = 0;

		while ((at = dwarf_ranges(die, at, &base, &start, &end)) > 0) {
			if (start >= end)
				continue;
			if (mp_push(di->units, di->nr_units, di->max_units,
				    (struct unit_range){start + bias, end + bias, bias, *die}))
				return -ENOMEM;
		}
		if (at < 0)
			note_unread(di);
	}
	if (dwfl_errno())
		note_unread(di);
	if (di->nr_units)
		qsort(di->units, di->nr_units, sizeof(*di->units), compare_units);
	return 0;
}

int md_debuginfo_open(const char *path, struct md_debuginfo **out, struct mp_err *err)
{
	struct md_debuginfo *di = calloc(1, sizeof(*di));
	int r;

	if (!di)
		return mp_err_set(err, ENOMEM, "out of memory");
	errno = 0;
	/* A report must not contact servers, so search only this machine. */
	unsetenv("DEBUGINFOD_URLS");
	di->dwfl = dwfl_begin(&callbacks);
	if (di->dwfl)
		di->module = dwfl_report_elf(di->dwfl, path, path, -1, 0, true);
	if (!di->module || dwfl_report_end(di->dwfl, NULL, NULL)) {
		r = failed();
		md_debuginfo_close(di);
		return r ? mp_err_code(err, -r)
			 : mp_err_set(err, ENOENT, "%s: %s", path, dwfl_errmsg(-1));
	}
	r = list_units(di);
	if (r) {
		md_debuginfo_close(di);
		return mp_err_code(err, -r);
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
	free(di->funcs);
	free(di->calls);
	free(di);
}

bool md_debuginfo_has_lines(const struct md_debuginfo *di)
{
	return di->nr_units > 0;
}

int md_debuginfo_fault(const struct md_debuginfo *di, struct mp_err *err)
{
	switch (di->fault) {
	case -EBADMSG: return mp_err_set(err, EBADMSG, "the debug information is damaged");
	case -ENOENT:
		return mp_err_set(err, ENOENT,
				  "a part of the debug information, a .dwo file, is missing");
	default: return mp_err_code(err, -di->fault);
	}
}

static struct unit_range *find_unit(struct md_debuginfo *di, uint64_t vaddr)
{
	size_t low = mp_search(i, 0, di->nr_units, di->units[i].start <= vaddr);

	return low && vaddr < di->units[low - 1].end ? &di->units[low - 1] : NULL;
}

bool md_debuginfo_line(struct md_debuginfo *di, uint64_t vaddr, struct md_line *out)
{
	struct unit_range *unit = find_unit(di, vaddr);
	Dwarf_Line *line;
	Dwarf_Lines *lines;
	size_t nr;

	if (!unit || !dwarf_hasattr(&unit->die, DW_AT_stmt_list) ||
	    !found(di, dwarf_getsrclines(&unit->die, &lines, &nr)))
		return false;
	line = dwarf_getsrc_die(&unit->die, vaddr - unit->bias);
	if (!line || dwarf_lineno(line, &out->line) || out->line <= 0 ||
	    dwarf_linediscriminator(line, &out->discriminator))
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

static const char *linkage_name(Dwarf_Die *die)
{
	Dwarf_Attribute attr;

	if (dwarf_attr_integrate(die, DW_AT_linkage_name, &attr) ||
	    dwarf_attr_integrate(die, DW_AT_MIPS_linkage_name, &attr))
		return dwarf_formstring(&attr);
	return NULL;
}

/* Return: an attribute of @die alone, or of what it was made of; 0: none, or above INT_MAX. */
static int number(Dwarf_Die *die, unsigned int name, bool inherited)
{
	Dwarf_Attribute attr;
	Dwarf_Word value;

	if (inherited ? !dwarf_attr_integrate(die, name, &attr) : !dwarf_attr(die, name, &attr))
		return 0;
	return dwarf_formudata(&attr, &value) || value > INT_MAX ? 0 : (int)value;
}

static void read_call(Dwarf_Die *die, struct md_inline *out)
{
	Dwarf_Attribute attr;
	Dwarf_Word file = 0;
	Dwarf_Files *files;
	Dwarf_Die unit;
	size_t nr;

	out->function = linkage_name(die);
	if (!out->function)
		out->function = dwarf_diename(die);
	if (!out->function)
		out->function = "?";
	out->first_line = number(die, DW_AT_decl_line, true);
	out->key = dwarf_dieoffset(die);
	out->call.line = number(die, DW_AT_call_line, false);
	out->call.discriminator = (unsigned int)number(die, AT_GNU_DISCRIMINATOR, false);
	if (!out->call.line || !dwarf_attr(die, DW_AT_call_file, &attr) ||
	    dwarf_formudata(&attr, &file) || !dwarf_diecu(die, &unit, NULL, NULL) ||
	    dwarf_getsrcfiles(&unit, &files, &nr) || file >= nr)
		return;
	out->call.file = dwarf_filesrc(files, file, NULL, NULL);
}

static int list_calls(struct md_debuginfo *di, Dwarf_Die *parent, unsigned int depth,
		      unsigned int nested)
{
	Dwarf_Addr base, start, end;
	Dwarf_Die die;
	int r;

	if (nested > DEPTH_MAX || !found(di, dwarf_child(parent, &die)))
		return 0;
	do {
		int tag = dwarf_tag(&die);
		bool inlined = tag == DW_TAG_inlined_subroutine;
		struct md_inline call = {0};
		size_t last = SIZE_MAX; /* the last range of this call */
		ptrdiff_t at = 0;

		r = enter(di, &die);
		if (r)
			return r;
		if (!inlined && tag != DW_TAG_lexical_block)
			continue;
		if (inlined)
			read_call(&die, &call);
		while (inlined && (at = dwarf_ranges(&die, at, &base, &start, &end)) > 0) {
			if (mp_grow(di->calls, di->max_calls, di->nr_calls + 1))
				return -ENOMEM;
			di->calls[di->nr_calls] =
				(struct call_range){start, end, depth, di->nr_calls + 1, call};
			last = di->nr_calls++;
		}
		if (at < 0)
			note_unread(di);
		r = list_calls(di, &die, depth + inlined, nested + 1);
		if (r)
			return r;
		if (last != SIZE_MAX)
			di->calls[last].next = di->nr_calls;
	} while (found(di, dwarf_siblingof(&die, &die)));
	return 0;
}

/* ---- functions ----------------------------------------------------------------------------- */

static int add_func(struct md_debuginfo *di, Dwarf_Die *die)
{
	Dwarf_Addr base, start, end;
	ptrdiff_t at = 0;

	while ((at = dwarf_ranges(die, at, &base, &start, &end)) > 0) {
		if (start >= end)
			continue;
		if (mp_grow(di->funcs, di->max_funcs, di->nr_funcs + 1))
			return note(di, -ENOMEM);
		di->funcs[di->nr_funcs] = (struct func_range){start, end, di->nr_funcs, *die};
		di->nr_funcs++;
	}
	if (at < 0)
		note_unread(di);
	return 0;
}

/* Lists definitions of functions, not declarations or inlined copies. */
static int list_funcs(struct md_debuginfo *di, Dwarf_Die *parent, unsigned int depth)
{
	Dwarf_Die die;
	int r = 0;

	if (depth > DEPTH_MAX || !found(di, dwarf_child(parent, &die)))
		return 0;
	do {
		r = enter(di, &die);
		if (r)
			return r;
		switch (dwarf_tag(&die)) {
		case DW_TAG_subprogram: r = add_func(di, &die); break;
		case DW_TAG_namespace:
		case DW_TAG_module:
		case DW_TAG_class_type:
		case DW_TAG_structure_type:
		case DW_TAG_union_type:
		case DW_TAG_lexical_block: break;
		default: continue;
		}
		if (!r)
			r = list_funcs(di, &die, depth + 1);
	} while (!r && found(di, dwarf_siblingof(&die, &die)));
	return r;
}

/* If several functions share code, the one that comes first in the tree is sorted last. */
static int compare_funcs(const void *a, const void *b)
{
	const struct func_range *x = a, *y = b;

	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	return (x->order < y->order) - (x->order > y->order);
}

/* Return: the unit's tree in its .dwo file, or @unit if there is none. */
static Dwarf_Die tree_of(struct md_debuginfo *di, Dwarf_Die unit)
{
	Dwarf_Die split, child;
	uint8_t type;

	if (dwarf_cu_info(unit.cu, NULL, &type, NULL, &split, NULL, NULL, NULL) ||
	    type != DW_UT_skeleton)
		return unit;
	if (split.cu)
		return split;
	if (dwarf_child(&unit, &child))
		note(di, -ENOENT);
	return unit;
}

/* Sets @di->func to the function that holds @vaddr; *@pc: its address in the debug file. */
static bool find_func(struct md_debuginfo *di, uint64_t vaddr, uint64_t *pc)
{
	struct unit_range *unit = find_unit(di, vaddr);
	Dwarf_Attribute producer;
	Dwarf_Die tree;
	size_t low;

	if (!unit)
		return false;
	*pc = vaddr - unit->bias;
	if (!di->unit || di->unit->die.addr != unit->die.addr) {
		di->nr_funcs = 0;
		di->has_func = false;
		di->unit = unit;
		tree = tree_of(di, unit->die);
		di->producer = dwarf_attr(&tree, DW_AT_producer, &producer)
				       ? dwarf_formstring(&producer)
				       : NULL;
		di->visited = tree.addr;
		list_funcs(di, &tree, 0);
		if (di->nr_funcs)
			qsort(di->funcs, di->nr_funcs, sizeof(*di->funcs), compare_funcs);
	}
	low = mp_search(i, 0, di->nr_funcs, di->funcs[i].start <= *pc);
	if (!low || *pc >= di->funcs[low - 1].end)
		return false;
	if (!di->has_func || di->func.addr != di->funcs[low - 1].die.addr) {
		di->func = di->funcs[low - 1].die;
		di->has_func = true;
		di->nr_calls = 0;
		di->visited = di->func.addr;
		note(di, list_calls(di, &di->func, 0, 0));
	}
	return true;
}

bool md_debuginfo_function(struct md_debuginfo *di, uint64_t vaddr, struct md_function *out)
{
	uint64_t pc;

	if (!find_func(di, vaddr, &pc))
		return false;
	*out = (struct md_function){linkage_name(&di->func), dwarf_diename(&di->func), di->producer,
				    number(&di->func, DW_AT_decl_line, true)};
	return true;
}

size_t md_debuginfo_inlines(struct md_debuginfo *di, uint64_t vaddr, struct md_inline *out,
			    size_t max)
{
	uint64_t pc;
	size_t nr = 0;

	if (!find_func(di, vaddr, &pc))
		return 0;
	/* The tree was walked from outside in, so depths ascend along each path. */
	for (size_t i = 0; i < di->nr_calls && nr < max;) {
		const struct call_range *range = &di->calls[i];

		if (range->depth != nr) {
			i++;
		} else if (pc < range->start || pc >= range->end) {
			i = range->next;
		} else {
			out[nr++] = range->call;
			i++;
		}
	}
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
