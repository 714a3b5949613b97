// SPDX-License-Identifier: Apache-2.0
/*
 * test_export_formats - text and numbers of each format, for this test program's own code with
 * known counts. Other tests (tests/e2e/stats/export*.sh) check that other tools read them.
 */
#include <inttypes.h>
#include <jansson.h>
#include <zlib.h>

#include "daemon/export/export.h"
#include "libprof/insn/insn.h"
#include "tests/unit/suite.h"

__attribute__((noinline, used)) static int helper(int n)
{
	__asm__ volatile("");
	return n * 3 + 1;
}

/* A loop with a call; its name is unique. */
__attribute__((noinline, used)) static int victim(int n)
{
	int sum = 0;

	for (int i = 0; i < n; i++)
		sum += helper(i);
	return sum;
}

/* A call whose target is only known at run time. */
__attribute__((noinline, used)) static int through(int (*volatile *f)(int), int n)
{
	return (*f)(n) + 1;
}

#define MAX_COUNTS 4096

static char self[4096];
static struct mp_module module = {.key = 1, .kind = MP_MODULE_FILE, .path = self};
static struct md_code code;
static struct mp_profile *profile;
static struct mp_counts inferred;
static struct mp_ip_count counts[MAX_COUNTS];
static size_t nr_counts;
static struct md_export_module m;
static struct md_export e;
static uint32_t victim_f, helper_f;
static char *text;
static size_t text_size;

static uint32_t find(const char *name)
{
	for (uint32_t f = 0; f < code.cfg->nr_funcs; f++)
		if (!strcmp(code.cfg->funcs[f].name, name))
			return f;
	ck_abort_msg("no function %s", name);
}

/* Counts @count samples at every address of a function. */
static void sample(uint32_t f, uint64_t count)
{
	const struct mp_func *func = &code.cfg->funcs[f];

	for (uint32_t b = func->first_block; b < func->first_block + func->nr_blocks; b++)
		for (uint32_t i = 0; i < code.cfg->blocks[b].size; i++)
			if (nr_counts < MAX_COUNTS)
				counts[nr_counts++] =
					(struct mp_ip_count){code.cfg->blocks[b].vaddr + i, count};
}

static int compare(const void *a, const void *b)
{
	const struct mp_ip_count *x = a, *y = b;

	return (x->vaddr > y->vaddr) - (x->vaddr < y->vaddr);
}

static void setup(void)
{
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	struct mp_elf *elf;

	ck_assert_int_gt(n, 0);
	self[n] = '\0';
	ck_assert_int_eq(mp_elf_open(self, MP_ELF_ID, &elf, &err), 0);
	module.id = elf->id;
	mp_elf_close(elf);
	ck_assert_msg(md_code_open(&module, NULL, true, &code, &err) == 0, "%s", err.msg);
	victim_f = find("victim");
	helper_f = find("helper");
	nr_counts = 0;
	sample(victim_f, 5);
	sample(helper_f, 9);
	qsort(counts, nr_counts, sizeof(*counts), compare);
	ck_assert_int_eq(mp_profile_build(code.cfg, counts, nr_counts, &profile, &err), 0);
	ck_assert_int_eq(mp_counts_build(code.cfg, profile, NULL, &inferred, NULL, &err), 0);
	module.nr_samples = profile->nr_samples;
	m = (struct md_export_module){
		.module = &module,
		.counts = counts,
		.nr_counts = nr_counts,
		.code = &code,
		.profile = profile,
		.inferred = &inferred,
	};
	text = NULL;
	e = (struct md_export){.out = open_memstream(&text, &text_size), .order = MP_ORDER_PH};
	ck_assert_int_eq(victim(2), 5);
	ck_assert_int_eq(through(&(int (*volatile)(int)){helper}, 1), 5);
}

static void teardown(void)
{
	if (e.out)
		fclose(e.out);
	free(text);
	mp_counts_fini(&inferred);
	mp_profile_free(profile);
	md_code_close(&code);
}

/* Writes the module in @format into the text. */
static void export(const struct md_export_format *format)
{
	if (format->begin)
		ck_assert_msg(!format->begin(&e, &err), "%s", err.msg);
	ck_assert_msg(!format->module(&e, &m, &err), "%s", err.msg);
	if (format->end)
		ck_assert_msg(!format->end(&e, &err), "%s", err.msg);
	if (format->drop)
		format->drop(&e);
	fclose(e.out);
	e.out = NULL;
	ck_assert_ptr_nonnull(text);
}

static uint64_t nr_samples(void)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < nr_counts; i++)
		sum += counts[i].count;
	return sum;
}

FIXTURE(setup, teardown);

TEST(folded_sums_by_function)
{
	unsigned int a = 0, b = 0;
	const char *line;

	export(&md_export_folded);
	line = strstr(text, ";victim ");
	ck_assert(line && sscanf(line, ";victim %u", &a) == 1);
	line = strstr(text, ";helper ");
	ck_assert(line && sscanf(line, ";helper %u", &b) == 1);
	ck_assert_uint_eq(a + b, nr_samples());
	ck_assert_uint_eq(e.nr_written, nr_samples());
}

TEST(scaled_counts_keep_what_ran_once)
{
	ck_assert_uint_eq(md_export_scaled(0), 0);
	ck_assert_uint_eq(md_export_scaled(-1), 0);
	ck_assert_uint_eq(md_export_scaled(1e-9), 1);
	ck_assert_uint_eq(md_export_scaled(2), 2 * MD_EXPORT_SCALE);
	ck_assert_uint_eq(md_export_scaled(1e300), UINT64_C(1) << 62);
}

/* Return: the first indirect call in @func. */
static uint64_t indirect_call(const struct mp_func *func)
{
	uint64_t at = func->vaddr;
	struct mp_insn insn;

	while (at < func->vaddr + func->size) {
		const uint8_t *bytes = mp_elf_bytes(code.elf, at, 15);

		ck_assert_ptr_nonnull(bytes);
		ck_assert_int_eq(mp_insn_decode(bytes, 15, at, &insn), 0);
		if (insn.kind == MP_INSN_ICALL)
			return at;
		at += insn.len;
	}
	ck_abort_msg("no indirect call in %s", func->name);
}

TEST(calls_are_those_of_the_code_and_those_that_were_seen)
{
	uint32_t through_f = find("through");
	uint64_t at = indirect_call(&code.cfg->funcs[through_f]);
	struct mp_edge_count edges[] = {
		{at, code.cfg->funcs[helper_f].vaddr, 640, 0},
		{at, code.cfg->funcs[helper_f].vaddr + 1, 5, 0}, /* into its middle: no call */
	};
	AUTO_FREE struct md_export_call *calls = NULL;
	bool direct = false, indirect = false;
	double unit;
	size_t nr;

	ck_assert(md_export_seen_per_count(&m) == 0);
	m.edges = edges;
	m.nr_edges = 2;
	ck_assert_int_eq(mp_profile_add_edges(profile, code.cfg, edges, 2, &err), 0);
	unit = md_export_seen_per_count(&m);
	ck_assert(unit > 0);
	ck_assert_int_eq(md_export_calls(&m, &calls, &nr), 0);
	for (size_t i = 0; i < nr; i++) {
		ck_assert(calls[i].count > 0);
		ck_assert(!i || calls[i - 1].caller <= calls[i].caller);
		direct |= calls[i].caller == victim_f && calls[i].callee == helper_f;
		if (calls[i].caller != through_f)
			continue;
		ck_assert(!indirect);
		ck_assert_uint_eq(calls[i].at, at);
		ck_assert_uint_eq(calls[i].callee, helper_f);
		ck_assert(calls[i].count * unit > 639 && calls[i].count * unit < 641);
		indirect = true;
	}
	ck_assert(direct && indirect);
}

/* ---- fdata --------------------------------------------------------------------------------- */

struct record {
	unsigned int from_known, to_known;
	char from[256], to[256];
	uint64_t from_off, to_off, mispredicted, count;
};

static const char *next_record(const char *p, struct record *r)
{
	if (!*p)
		return NULL;
	ck_assert_msg(sscanf(p, "%u %255s %" SCNx64 " %u %255s %" SCNx64 " %" SCNu64 " %" SCNu64,
			     &r->from_known, r->from, &r->from_off, &r->to_known, r->to, &r->to_off,
			     &r->mispredicted, &r->count) == 8,
		      "not a record: %.80s", p);
	return strchr(p, '\n') + 1;
}

TEST(fdata_of_samples_is_each_sample)
{
	const struct mp_func *func = &code.cfg->funcs[victim_f];
	char want[64];

	e.branches = MD_BRANCHES_NONE;
	export(&md_export_fdata);
	ck_assert_int_eq(strncmp(text, "no_lbr ", 7), 0);
	snprintf(want, sizeof(want), "\n1 victim/1 0 5\n1 victim/1 1 5\n");
	ck_assert_ptr_nonnull(strstr(text, want));
	ck_assert_uint_gt(func->size, 2);
	ck_assert_uint_eq(e.nr_written, nr_samples());
	ck_assert_uint_eq(e.nr_skipped, 0);
}

/* Flow into each block equals flow out of it, when a reader adds up the records. */
TEST(fdata_inferred_conserves_flow)
{
	const struct mp_func *func = &code.cfg->funcs[victim_f];
	uint64_t *in = calloc(func->size + 1, sizeof(*in)), calls = 0, entries = 0;
	struct record r;

	e.branches = MD_BRANCHES_INFERRED;
	export(&md_export_fdata);
	ck_assert_ptr_nonnull(in);
	for (const char *p = text; (p = next_record(p, &r));) {
		ck_assert_uint_gt(r.count, 0);
		ck_assert(strcmp(r.to, "victim/1") || r.to_off < func->size);
		if (!strcmp(r.to, "victim/1"))
			in[r.to_off] += r.count;
		if (!strcmp(r.to, "victim/1") && !r.to_off && !r.from_known)
			entries += r.count;
		if (!strcmp(r.from, "victim/1") && !strcmp(r.to, "helper/1")) {
			ck_assert_uint_eq(r.to_off, 0);
			calls += r.count;
		}
	}
	ck_assert_uint_gt(entries, 0);
	ck_assert_uint_gt(calls, 0);
	for (uint32_t b = func->first_block; b < func->first_block + func->nr_blocks; b++) {
		uint64_t have = in[code.cfg->blocks[b].vaddr - func->vaddr];
		uint64_t want = md_export_scaled(inferred.block[b]);

		/* A block that is none for BOLT has no count of its own. */
		if (have)
			ck_assert_uint_le(have > want ? have - want : want - have, 4);
	}
	free(in);
}

TEST(fdata_seen_is_what_was_seen)
{
	const struct mp_func *func = &code.cfg->funcs[victim_f];
	const struct mp_call *call = NULL;
	struct mp_edge_count edges[4];
	uint64_t back_from = 0, back_to = 0, ret = 0;
	struct record r;
	bool branch = false, called = false;

	for (uint32_t i = 0; i < code.cfg->nr_calls; i++)
		if (code.cfg->calls[i].callee == helper_f)
			call = &code.cfg->calls[i];
	for (uint32_t b = func->first_block; b < func->first_block + func->nr_blocks; b++) {
		const struct mp_block *block = &code.cfg->blocks[b];

		if (block->term == MP_TERM_COND &&
		    mp_block_target(block) < block->vaddr + block->size) {
			back_from = block->vaddr + block->size - block->term_len;
			back_to = mp_block_target(block);
		}
		if (block->term == MP_TERM_RET)
			ret = block->vaddr + block->size - block->term_len;
	}
	ck_assert(call && !call->tail && back_from && ret);
	edges[0] = (struct mp_edge_count){mp_call_insn(code.cfg, call),
					  mp_call_target(code.cfg, call), 700, 0};
	edges[1] = (struct mp_edge_count){back_from, back_to, 600, 17};
	edges[2] = (struct mp_edge_count){ret, mp_call_insn(code.cfg, call), 99, 0};
	m.edges = edges;
	m.nr_edges = 3;
	export(&md_export_fdata); /* the default, since there are some */
	for (const char *p = text; (p = next_record(p, &r));) {
		if (r.from_off == back_from - func->vaddr && r.to_off == back_to - func->vaddr &&
		    !strcmp(r.from, "victim/1")) {
			ck_assert_str_eq(r.to, "victim/1");
			ck_assert_uint_eq(r.count, 600);
			ck_assert_uint_eq(r.mispredicted, 17);
			branch = true;
		}
		if (!strcmp(r.to, "helper/1") && !strcmp(r.from, "victim/1")) {
			ck_assert_uint_eq(r.to_off, 0);
			ck_assert_uint_eq(r.count, 700);
			called = true;
		}
		/* BOLT pairs calls and returns itself. */
		ck_assert(strcmp(r.from, "victim/1") || r.from_off != ret - func->vaddr);
	}
	ck_assert(branch && called);
}

TEST(fdata_seen_needs_something_seen)
{
	e.branches = MD_BRANCHES_SEEN;
	ck_assert_int_eq(md_export_fdata.module(&e, &m, &err), -ENODATA);
	ck_assert_ptr_nonnull(strstr(err.msg, "no branch was seen"));
	e.branches = MD_BRANCHES_AUTO;
	ck_assert(md_export_fdata.wants_counts(&e, 0));
	ck_assert(md_export_fdata.wants_counts(&e, 1));
	e.branches = MD_BRANCHES_NONE;
	ck_assert(!md_export_fdata.wants_counts(&e, 0));
}

/* ---- the others ---------------------------------------------------------------------------- */

TEST(callgrind_totals_are_the_sum_of_its_lines)
{
	uint64_t sum = 0, total = 0, a, count;
	bool after_call = false, calls = false;
	char *save, *line;

	export(&md_export_callgrind);
	for (line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		unsigned int source;

		if (!strncmp(line, "calls=", 6)) {
			after_call = calls = true;
		} else if (sscanf(line, "0x%" SCNx64 " %u %" SCNu64, &a, &source, &count) == 3) {
			sum += after_call ? 0 : count;
			after_call = false;
		} else {
			sscanf(line, "totals: %" SCNu64, &total);
		}
	}
	ck_assert(calls);
	ck_assert_uint_eq(total, nr_samples());
	ck_assert_uint_eq(sum, total);
}

TEST(order_says_each_name_once_to_each_linker)
{
	const char *at;

	e.linker = MD_LINKER_LLD;
	export(&md_export_order);
	at = strstr(text, "helper\n");
	ck_assert(at && !strstr(at + 1, "helper\n"));
	ck_assert_ptr_nonnull(strstr(text, "victim\n"));
	ck_assert_ptr_null(strstr(text, "setup\n")); /* it never ran, by the counts */
}

TEST(order_for_gold_names_sections)
{
	e.linker = MD_LINKER_GOLD;
	export(&md_export_order);
	ck_assert_ptr_nonnull(strstr(text, ".text.victim\n.text.hot.victim\n"));
}

TEST(order_for_ld_is_a_script)
{
	e.linker = MD_LINKER_LD;
	export(&md_export_order);
	ck_assert_int_eq(strncmp(text, "SECTIONS\n{\n", 11), 0);
	ck_assert_ptr_nonnull(strstr(text, "*(.text.victim) "));
	ck_assert_ptr_nonnull(strstr(text, "}\nINSERT BEFORE .text;\n"));
}

TEST(json_is_json_and_complete)
{
	json_t *root, *mod, *func, *value;
	json_int_t in_functions = 0, in_addresses = 0;
	json_error_t why;
	size_t i;

	module.path = (char *)"/tmp/a \"b\"\n\xff";
	export(&md_export_json);
	module.path = self;
	root = json_loads(text, 0, &why);
	ck_assert_msg(root != NULL, "%s at %d", why.text, why.position);
	ck_assert_int_eq(json_integer_value(json_object_get(root, "schema")),
			 MD_EXPORT_JSON_SCHEMA);
	mod = json_array_get(json_object_get(root, "modules"), 0);
	ck_assert(json_is_true(json_object_get(mod, "code")));
	json_array_foreach(json_object_get(mod, "addresses"), i, value)
		in_addresses += json_integer_value(json_array_get(value, 1));
	json_array_foreach(json_object_get(mod, "functions"), i, func)
	{
		size_t b;
		json_t *block;

		in_functions += json_integer_value(json_object_get(func, "samples"));
		ck_assert_uint_gt(json_array_size(json_object_get(func, "blocks")), 0);
		json_array_foreach(json_object_get(func, "blocks"), b, block)
			ck_assert(json_is_number(json_object_get(block, "count")));
	}
	ck_assert_int_eq(in_addresses, (json_int_t)nr_samples());
	ck_assert_int_eq(in_functions, (json_int_t)nr_samples());
	json_decref(root);
}

TEST(json_says_why_there_is_no_code)
{
	json_t *root, *mod;

	m.code = NULL;
	m.inferred = NULL;
	m.why = "gone";
	export(&md_export_json);
	root = json_loads(text, 0, NULL);
	ck_assert_ptr_nonnull(root);
	mod = json_array_get(json_object_get(root, "modules"), 0);
	ck_assert_str_eq(json_string_value(json_object_get(mod, "why")), "gone");
	ck_assert_uint_eq(json_array_size(json_object_get(mod, "functions")), 0);
	ck_assert_uint_eq(json_array_size(json_object_get(mod, "addresses")), nr_counts);
	json_decref(root);
}

/* ---- pprof --------------------------------------------------------------------------------- */

static uint64_t varint(const uint8_t **p, const uint8_t *end)
{
	uint64_t value = 0;

	for (unsigned int shift = 0; *p < end && shift < 64; shift += 7) {
		uint8_t byte = *(*p)++;

		value |= (uint64_t)(byte & 0x7f) << shift;
		if (!(byte & 0x80))
			return value;
	}
	ck_abort_msg("a varint without end");
}

/* Reads the next field: *@bytes is NULL if it is an integer. */
static uint64_t field(const uint8_t **p, const uint8_t *end, const uint8_t **bytes, uint64_t *value)
{
	uint64_t tag = varint(p, end);

	*value = varint(p, end);
	*bytes = NULL;
	if ((tag & 7) == 2) {
		*bytes = *p;
		ck_assert_uint_le(*value, (uint64_t)(end - *p));
		*p += *value;
	} else {
		ck_assert_uint_eq(tag & 7, 0);
	}
	return tag >> 3;
}

TEST(pprof_refers_only_to_what_it_holds)
{
	static uint8_t raw[1 << 20];
	uint64_t strings = 0, functions = 0, locations = 0, samples = 0, nanoseconds = 0;
	uint64_t first_string_size = 99;
	bool victim_named = false;
	const uint8_t *p = raw, *end, *bytes, *inner, *unused;
	uint64_t value, v, kind;
	z_stream z = {0};

	e.period_ns = 250000;
	export(&md_export_pprof);
	z.next_in = (uint8_t *)text;
	z.avail_in = (unsigned int)text_size;
	z.next_out = raw;
	z.avail_out = sizeof(raw);
	ck_assert_int_eq(inflateInit2(&z, 15 + 16), Z_OK);
	ck_assert_int_eq(inflate(&z, Z_FINISH), Z_STREAM_END);
	end = raw + z.total_out;
	inflateEnd(&z);
	while (p < end) {
		kind = field(&p, end, &bytes, &value);
		inner = bytes;
		if (kind == 6) { /* string_table */
			if (!strings++)
				first_string_size = value;
			victim_named |= value == 6 && !memcmp(bytes, "victim", 6);
		} else if (kind == 5) { /* function */
			functions++;
			while (inner < bytes + value)
				if (field(&inner, bytes + value, &unused, &v) >= 2)
					ck_assert_uint_lt(v, strings);
		} else if (kind == 4) { /* location */
			locations++;
			while (inner < bytes + value) {
				const uint8_t *line;

				if (field(&inner, bytes + value, &line, &v) != 4)
					continue;
				ck_assert_uint_eq(field(&line, line + v, &unused, &v), 1);
				ck_assert_uint_le(v, functions);
			}
		} else if (kind == 2) { /* sample: packed location, packed values */
			ck_assert_uint_eq(field(&inner, bytes + value, &unused, &v), 1);
			ck_assert_uint_le(varint(&unused, unused + v), locations);
			ck_assert_uint_eq(field(&inner, bytes + value, &unused, &v), 2);
			samples += varint(&unused, unused + v);
			nanoseconds += varint(&unused, unused + v);
		}
	}
	ck_assert_uint_eq(first_string_size, 0);
	ck_assert(victim_named);
	ck_assert_uint_eq(locations, nr_counts);
	ck_assert_uint_eq(samples, nr_samples());
	ck_assert_uint_eq(nanoseconds, nr_samples() * 250000);
}
