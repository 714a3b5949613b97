// SPDX-License-Identifier: Apache-2.0
/* graph_imports - symbols of pointers, and groups of sites; see graph_imports.h. */
#include "daemon/calls/graph_imports.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "libprof/base/grow.h"
#include "libprof/base/search.h"

/* Instructions of a PLT entry up to its jump. */
#define PLT_INSNS 3

/* ---- symbols --------------------------------------------------------------------------------- */

struct export
{
	const char *name;
	uint32_t module, function; /* @function: MP_NONE: an indirect function */
};

static int compare_exports(const void *a, const void *b)
{
	const struct export *x = a, *y = b;
	int r = strcmp(x->name, y->name);

	return r ? r : (x->module > y->module) - (x->module < y->module);
}

/* The functions that modules export, by name. Ownership: free(*@out). */
static int list_exports(const struct md_call_graph *graph, struct export **out, size_t *nr)
{
	size_t max = 1;

	for (uint32_t i = 0; i < graph->nr_modules; i++)
		max += graph->modules[i].is_open ? graph->modules[i].code.elf->nr_symbols : 0;
	*nr = 0;
	*out = calloc(max, sizeof(**out));
	if (!*out)
		return -ENOMEM;
	for (uint32_t i = 0; i < graph->nr_modules; i++) {
		const struct md_graph_module *m = &graph->modules[i];

		for (uint32_t k = 0; m->is_open && k < m->code.elf->nr_symbols; k++) {
			const struct mp_symbol *s = &m->code.elf->symbols[k];

			if (!s->dynamic || s->shndx == SHN_UNDEF || s->bind == STB_LOCAL ||
			    (s->type != STT_FUNC && s->type != STT_GNU_IFUNC))
				continue;
			(*out)[(*nr)++] = (struct export){
				s->name, i,
				s->type == STT_FUNC ? md_graph_function_at(m, s->vaddr) : MP_NONE};
		}
	}
	if (*nr)
		qsort(*out, *nr, sizeof(**out), compare_exports);
	return 0;
}

/* Return: the only module's function of this name; *@function MP_NONE: none, or several. */
static struct md_graph_function find_export(const struct export *exports, size_t nr,
					    const char *name)
{
	const struct md_graph_function none = {MP_NONE, MP_NONE};
	size_t low = mp_search(mid, 0, nr, strcmp(exports[mid].name, name) < 0);

	if (low == nr || strcmp(exports[low].name, name) != 0 || exports[low].function == MP_NONE)
		return none;
	/* One module may have several versions of a symbol. */
	for (size_t i = low + 1; i < nr && !strcmp(exports[i].name, name); i++)
		if (exports[i].module != exports[low].module ||
		    exports[i].function != exports[low].function)
			return none;
	return (struct md_graph_function){exports[low].module, exports[low].function};
}

/* ---- pointers -------------------------------------------------------------------------------- */

/* Return: the address of the pointer that a PLT entry jumps through; 0: not a PLT entry. */
static uint64_t plt_pointer(const struct mp_elf *elf, uint64_t vaddr)
{
	const struct mp_section *section = mp_elf_section_at(elf, vaddr);
	struct mp_insn insn;

	if (!section || strncmp(section->name, ".plt", 4) != 0)
		return 0;
	for (int i = 0; i < PLT_INSNS; i++, vaddr += insn.len) {
		const uint8_t *bytes = mp_elf_bytes(elf, vaddr, 8);

		if (!bytes || mp_insn_decode(bytes, 8, vaddr, &insn))
			return 0;
		if (insn.kind == MP_INSN_IJUMP)
			return insn.rip_relative ? insn.target : 0;
	}
	return 0;
}

/* Return: the pointer that a site calls through; 0: none, or not at a fixed address. */
static uint64_t pointer_of(const struct md_graph_module *m, const struct mp_call_site *site)
{
	if (site->kind == MP_CALL_INDIRECT || site->kind == MP_CALL_INDIRECT_TAIL)
		return site->target;
	return site->callee == MP_NONE ? plt_pointer(m->code.elf, site->target) : 0;
}

/* Return: the name of entry @index of .dynsym, whose entries are the file's last symbols; NULL: none. */
static const char *dynamic_name(const struct mp_elf *elf, uint32_t index)
{
	const struct mp_symbol *last = elf->symbols + elf->nr_symbols;

	if (!elf->nr_symbols)
		return NULL;
	last--;
	if (!last->dynamic || index > last->index || last->index - index >= elf->nr_symbols ||
	    (last - (last->index - index))->index != index)
		return NULL;
	return (last - (last->index - index))->name;
}

/* Return: the symbol whose address the loader stores in a pointer; NULL: none. */
static const char *symbol_of(const struct mp_elf *elf, uint64_t pointer)
{
	const struct mp_reloc *reloc = pointer ? mp_elf_dyn_reloc_at(elf, pointer) : NULL;
	const char *name = reloc && reloc->sym && !reloc->addend ? dynamic_name(elf, reloc->sym)
								 : NULL;

	return name && name[0] ? name : NULL;
}

static void resolve_module(struct md_call_graph *graph, uint32_t module,
			   const struct export *exports, size_t nr)
{
	struct md_graph_module *m = &graph->modules[module];

	for (uint32_t i = 0; i < m->sites.nr; i++) {
		const struct mp_call_site *site = &m->sites.sites[i];
		const char *name;

		m->targets[i] = (struct md_graph_function){module, site->callee};
		if (site->callee != MP_NONE)
			continue;
		name = symbol_of(m->code.elf, pointer_of(m, site));
		if (name)
			m->targets[i] = find_export(exports, nr, name);
	}
}

/* Lists the functions of other modules whose addresses the loader stores in a module's data. */
static int list_pointed(struct md_call_graph *graph, uint32_t module, const struct export *exports,
			size_t nr)
{
	struct md_graph_module *m = &graph->modules[module];
	const struct mp_elf *elf = m->code.elf;

	m->pointed = m->is_open ? calloc(elf->nr_dyn_relocs + (size_t)1, sizeof(*m->pointed))
				: NULL;
	if (!m->pointed)
		return m->is_open ? -ENOMEM : 0;
	for (uint32_t i = 0; i < elf->nr_dyn_relocs; i++) {
		const struct mp_reloc *reloc = &elf->dyn_relocs[i];
		const char *name = NULL;

		if (reloc->sym && !reloc->addend &&
		    (reloc->type == R_X86_64_64 || reloc->type == R_X86_64_GLOB_DAT))
			name = dynamic_name(elf, reloc->sym);
		if (!name)
			continue;
		m->pointed[m->nr_pointed] = find_export(exports, nr, name);
		m->nr_pointed += m->pointed[m->nr_pointed].function != MP_NONE;
	}
	return 0;
}

int md_graph_resolve(struct md_call_graph *graph)
{
	struct export *exports;
	size_t nr;
	int r = 0;

	if (list_exports(graph, &exports, &nr))
		return -ENOMEM;
	for (uint32_t i = 0; i < graph->nr_modules && !r; i++) {
		resolve_module(graph, i, exports, nr);
		r = list_pointed(graph, i, exports, nr);
	}
	free(exports);
	return r;
}

/* ---- groups ---------------------------------------------------------------------------------- */

/* One site that calls through a pointer, and whose function is not known. */
struct import {
	const char *name;      /* of the symbol; NULL: none */
	uint32_t module, site; /* index in the module's sites */
	uint64_t pointer;      /* if there is no name */
};

struct imports {
	struct md_call_graph *graph;
	struct import *imports;
	size_t nr, max;
	/* lists of the edges that samples saw, by site and by edge */
	uint32_t *heads, *next, nr_sites;
};

static int add_import(struct imports *in, const struct import *import)
{
	return mp_push(in->imports, in->nr, in->max, *import);
}

/* The sites that ran, or that a tree has. */
static int list_imports(struct imports *in, uint32_t module)
{
	const struct md_graph_module *m = &in->graph->modules[module];
	int r = 0;

	for (uint32_t i = 0; i < m->sites.nr && !r; i++) {
		const struct mp_call_site *site = &m->sites.sites[i];
		uint64_t pointer;

		if (m->targets[i].function != MP_NONE ||
		    (m->site_ids[i] == MP_NONE &&
		     !(mp_call_site_count(m->code.cfg, &m->counts, site) > 0)))
			continue;
		pointer = pointer_of(m, site);
		if (pointer)
			r = add_import(in, &(struct import){symbol_of(m->code.elf, pointer), module,
							    i, pointer});
	}
	return r;
}

/* By name; without names, by module and pointer. */
static int compare_groups(const struct import *x, const struct import *y)
{
	if (x->name || y->name)
		return x->name && y->name ? strcmp(x->name, y->name) : x->name ? 1 : -1;
	if (x->module != y->module)
		return x->module < y->module ? -1 : 1;
	return (x->pointer > y->pointer) - (x->pointer < y->pointer);
}

static int compare_imports(const void *a, const void *b)
{
	const struct import *x = a, *y = b;
	int r = compare_groups(x, y);

	if (r)
		return r;
	if (x->module != y->module)
		return x->module < y->module ? -1 : 1;
	return (x->site > y->site) - (x->site < y->site);
}

/* The functions that samples saw behind the sites of a group. Ownership: free(*@targets). */
static int list_targets(const struct imports *in, size_t first, size_t end, uint32_t **targets,
			size_t *nr)
{
	const struct md_call_graph *graph = in->graph;
	size_t max = 0;

	for (size_t i = first; i < end; i++) {
		uint32_t site = graph->modules[in->imports[i].module].site_ids[in->imports[i].site];
		uint32_t e = site < in->nr_sites ? in->heads[site] : MP_NONE;

		for (; e != MP_NONE; e = in->next[e]) {
			size_t k = 0;

			while (k < *nr && (*targets)[k] != graph->graph.edges[e].function)
				k++;
			if (k < *nr)
				continue;
			if (mp_push(*targets, *nr, max, graph->graph.edges[e].function))
				return -ENOMEM;
		}
	}
	return 0;
}

static int share(struct imports *in, size_t first, size_t end)
{
	uint32_t *targets = NULL;
	size_t nr = 0;
	int r = list_targets(in, first, end, &targets, &nr);

	for (size_t i = first; i < end && nr && !r; i++) {
		uint32_t site =
			md_call_graph_site(in->graph, in->imports[i].module, in->imports[i].site);

		r = site == MP_NONE ? -ENOMEM : 0;
		for (size_t k = 0; k < nr && !r; k++)
			if (md_call_graph_edge(in->graph, site, targets[k]) == MP_NONE)
				r = -ENOMEM;
	}
	free(targets);
	return r;
}

static int list_edges(struct imports *in)
{
	const struct mp_callgraph *graph = &in->graph->graph;

	in->nr_sites = graph->nr_sites;
	in->next = malloc((graph->nr_edges + (size_t)1) * sizeof(*in->next));
	in->heads = malloc((graph->nr_sites + (size_t)1) * sizeof(*in->heads));
	if (!in->next || !in->heads)
		return -ENOMEM;
	for (uint32_t i = 0; i < graph->nr_sites; i++)
		in->heads[i] = MP_NONE;
	for (uint32_t e = 0; e < graph->nr_edges; e++) {
		uint32_t site = graph->edges[e].site;

		if (site == MP_CALLGRAPH_OUTSIDE)
			continue;
		in->next[e] = in->heads[site];
		in->heads[site] = e;
	}
	return 0;
}

int md_graph_share_targets(struct md_call_graph *graph)
{
	struct imports in = {.graph = graph};
	int r = list_edges(&in);

	for (uint32_t i = 0; i < graph->nr_modules && !r; i++)
		r = list_imports(&in, i);
	if (!r && in.nr)
		qsort(in.imports, in.nr, sizeof(*in.imports), compare_imports);
	for (size_t i = 0, end; i < in.nr && !r; i = end) {
		for (end = i + 1; end < in.nr && !compare_groups(&in.imports[i], &in.imports[end]);)
			end++;
		r = share(&in, i, end);
	}
	free(in.next);
	free(in.heads);
	free(in.imports);
	return r;
}
