// SPDX-License-Identifier: Apache-2.0
/* call_names - opens files, and keeps names; see call_names.h. */
#include "daemon/calls/call_names.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/code/names.h"
#include "daemon/code/stats_code.h"

/* A module whose addresses came. */
struct opened {
	const struct mp_module *module;
	struct md_code code;
	struct md_names symbols; /* for PLT entries */
	bool is_open, has_symbols;
};

struct name {
	struct mp_context_key key;
	char *text;
};

struct md_call_names {
	const struct mp_module *modules;
	uint64_t *ids; /* of @modules, as trees name them */
	struct opened *opened;
	size_t nr;
	const char *binary;
	void (*note)(void *arg, const char *message);
	void *arg;
	struct mp_err failure;
	int failed;	    /* 0, or -errno and @failure: a file was not read */
	struct name *names; /* hash table; text NULL: free */
	size_t nr_names, nr_slots;
};

struct md_call_names *md_call_names_new(const struct mp_module *modules, size_t nr,
					const char *binary,
					void (*note)(void *arg, const char *message), void *arg)
{
	struct md_call_names *names = calloc(1, sizeof(*names));

	if (!names)
		return NULL;
	*names = (struct md_call_names){
		.modules = modules,
		.nr = nr,
		.binary = binary,
		.note = note,
		.arg = arg,
		.ids = calloc(nr + 1, sizeof(*names->ids)),
		.opened = calloc(nr + 1, sizeof(*names->opened)),
		.nr_slots = 1024,
		.names = calloc(1024, sizeof(*names->names)),
	};
	if (!names->ids || !names->opened || !names->names) {
		md_call_names_free(names);
		return NULL;
	}
	for (size_t i = 0; i < nr; i++)
		names->ids[i] = mp_context_module_of(&modules[i].id);
	return names;
}

void md_call_names_free(struct md_call_names *names)
{
	if (!names)
		return;
	for (size_t i = 0; names->opened && i < names->nr; i++) {
		struct opened *o = &names->opened[i];

		if (o->has_symbols)
			md_names_fini(&o->symbols);
		if (o->is_open)
			md_code_close(&o->code);
	}
	for (size_t i = 0; names->names && i < names->nr_slots; i++)
		free(names->names[i].text);
	free(names->names);
	free(names->opened);
	free(names->ids);
	free(names);
}

static size_t index_of(const struct md_call_names *names, uint64_t module)
{
	size_t i = 0;

	while (i < names->nr && names->ids[i] != module)
		i++;
	return i;
}

const struct mp_module *md_call_names_module(const struct md_call_names *names, uint64_t module)
{
	size_t i = module ? index_of(names, module) : names->nr;

	return i < names->nr ? &names->modules[i] : NULL;
}

/* Return: the opened file of a module; NULL: the module is not known, or its file cannot be read. */
static struct opened *open_module(struct md_call_names *names, uint64_t module)
{
	size_t i = module ? index_of(names, module) : names->nr;
	struct opened *o = &names->opened[i];
	struct mp_err why = {0};
	int r;

	if (i == names->nr)
		return NULL;
	if (o->module)
		return o->is_open ? o : NULL;
	o->module = &names->modules[i];
	r = md_code_open(o->module, names->binary, false, &o->code, &why);
	if (r && names->binary && !mp_err_is_failure(r))
		r = md_code_open(o->module, NULL, false, &o->code, &why);
	o->is_open = !r;
	if (r && !mp_err_is_failure(r)) {
		if (o->module->kind == MP_MODULE_FILE)
			names->note(names->arg, why.msg);
		return NULL;
	}
	if (!r && (r = md_names_build(o->code.elf, NULL, &o->symbols)))
		mp_err_code(&why, -r);
	o->has_symbols = !r;
	if (r) {
		names->failed = r;
		names->failure = why;
	}
	return o->is_open ? o : NULL;
}

int md_call_names_failed(const struct md_call_names *names, struct mp_err *err)
{
	if (names->failed)
		*err = names->failure;
	return names->failed;
}

void md_call_names_to_function(struct md_call_names *names, struct mp_context_key *key)
{
	bool is_call = key->kind == MP_CONTEXT_CALL;
	struct opened *o;
	uint32_t f;

	if (key->kind == MP_CONTEXT_OTHER || key->kind == MP_CONTEXT_TRUNCATED)
		return;
	key->kind = MP_CONTEXT_FUNCTION;
	if (!key->module)
		return;
	o = open_module(names, key->module);
	if (!o) {
		key->vaddr = 0;
		return;
	}
	f = mp_cfg_func_at(o->code.cfg, key->vaddr - is_call);
	if (f != MP_NONE)
		key->vaddr = o->code.cfg->funcs[f].vaddr;
	else if (o->has_symbols && md_names_plt(&o->symbols, key->vaddr - is_call))
		key->vaddr = (key->vaddr - is_call) & ~UINT64_C(15);
	else
		key->vaddr = 0;
}

/* ---- names ---------------------------------------------------------------------------------- */

static char *format_place(uint64_t place)
{
	char text[64];

	if (place == MP_CONTEXT_KERNEL)
		return strdup("[kernel]");
	snprintf(text, sizeof(text), "(%s)",
		 place < MP_NR_UNATTR ? mp_unattributed_name((enum mp_unattributed)place)
				      : "unmapped");
	return strdup(text);
}

static char *format_function(struct md_call_names *names, const struct mp_context_key *key)
{
	const struct mp_module *module = md_call_names_module(names, key->module);
	struct opened *o = open_module(names, key->module);
	const char *plt;
	char buf[32], *text;
	uint32_t f;

	if (!module)
		return strdup("(unknown module)");
	f = o && key->vaddr ? mp_cfg_func_at(o->code.cfg, key->vaddr) : MP_NONE;
	if (f != MP_NONE)
		return strdup(md_code_function_name(&o->code.cfg->funcs[f], buf));
	plt = o && key->vaddr && o->has_symbols ? md_names_plt(&o->symbols, key->vaddr) : NULL;
	if (plt)
		return asprintf(&text, "%s@plt", plt) < 0 ? NULL : text;
	return asprintf(&text, "(in %s)", basename(module->path)) < 0 ? NULL : text;
}

static char *format(struct md_call_names *names, const struct mp_context_key *key)
{
	char *text;

	if (key->kind == MP_CONTEXT_OTHER)
		return strdup("(other)");
	if (key->kind == MP_CONTEXT_TRUNCATED)
		return asprintf(&text, "(truncated: %s)",
				mp_walk_stop_name((enum mp_walk_stop)key->vaddr)) < 0
			       ? NULL
			       : text;
	return key->module ? format_function(names, key) : format_place(key->vaddr);
}

static struct name *find_name(struct name *table, size_t nr, const struct mp_context_key *key)
{
	uint64_t hash = (key->module ^ key->vaddr * 0x9e3779b97f4a7c15u) + (uint64_t)key->kind;
	size_t i = (size_t)(hash * 0x9e3779b97f4a7c15u >> 20) & (nr - 1);

	while (table[i].text &&
	       (table[i].key.module != key->module || table[i].key.vaddr != key->vaddr ||
		table[i].key.kind != key->kind))
		i = (i + 1) & (nr - 1);
	return &table[i];
}

static bool grow(struct md_call_names *names)
{
	struct name *table = calloc(2 * names->nr_slots, sizeof(*table));

	if (!table)
		return false;
	for (size_t i = 0; i < names->nr_slots; i++)
		if (names->names[i].text)
			*find_name(table, 2 * names->nr_slots, &names->names[i].key) =
				names->names[i];
	free(names->names);
	names->names = table;
	names->nr_slots *= 2;
	return true;
}

const char *md_call_names_get(struct md_call_names *names, const struct mp_context_key *key)
{
	struct name *name;

	if (2 * names->nr_names >= names->nr_slots && !grow(names))
		return NULL;
	name = find_name(names->names, names->nr_slots, key);
	if (!name->text) {
		name->key = *key;
		name->text = format(names, key);
		names->nr_names += name->text != NULL;
	}
	return name->text;
}
