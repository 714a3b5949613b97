// SPDX-License-Identifier: Apache-2.0
/*
 * import_callgrind - reads callgrind.out files ("Callgrind Format Specification", version 1):
 * exact counts of executed instructions per address and, with --collect-jumps=yes, of
 * transfers. Called by stats_import.
 *
 * Callgrind prints link-time addresses: the run-time address minus the object's load bias, also
 * for position-independent programs.
 */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/import/import.h"
#include "libprof/base/grow.h"

#define NO_MODULE     UINT32_MAX
#define MAX_POSITIONS 4
#define MAX_NAMES     (1u << 20) /* highest number of an object that is accepted */

struct reader {
	struct md_import *import;
	struct md_lines *lines;
	struct mp_err *err;
	/* maps the (number) of an ob= line to module + 1; 0: not seen */
	uint32_t *names;
	size_t nr_names;
	uint32_t module; /* module of the following lines; NO_MODULE: "???" */
	bool have_object;
	int nr_positions, instr; /* number of position columns; column of the address, -1: none */
	int nr_events, ir;	 /* number of event columns; column of Ir, -1: none */
	uint64_t last[MAX_POSITIONS];
	/*
	 * The next position line gives the source of a call or jump. After calls= its costs are
	 * the callee's.
	 */
	enum {
		PENDING_NOTHING,
		PENDING_CALL,
		PENDING_JUMP
	} pending;
	uint64_t pending_to, pending_count;
	uint32_t pending_module; /* module of pending_to */
	uint32_t called_module;	 /* from a cob= line; NO_MODULE: there was none */
	bool other_function;	 /* a jfn= or jfi= line preceded */
	bool have_jumps;
	bool counted; /* callgrind wrote the file; other tools use its format for samples */
	uint64_t sum, totals;
	bool have_totals;
};

static const char *skip_space(const char *p)
{
	while (*p == ' ' || *p == '\t')
		p++;
	return p;
}

/* Reads a decimal or 0x number. Return: 0 or -EINVAL. */
static int get_number(const char **pos, uint64_t *value)
{
	const char *p = *pos;
	int base = 10;
	char *end;

	if (p[0] == '0' && (p[1] == 'x' || p[1] == 'X')) {
		base = 16;
		p += 2;
	}
	if (base == 16 ? !isxdigit((unsigned char)*p) : !isdigit((unsigned char)*p))
		return -EINVAL;
	errno = 0;
	*value = strtoull(p, &end, base);
	if (errno || (*end && *end != ' ' && *end != '\t'))
		return -EINVAL;
	*pos = end;
	return 0;
}

/* ---- header -------------------------------------------------------------------------------- */

/* Return: number of words in @text; *@which is the index of @wanted, or -1. */
static int find_word(const char *text, const char *wanted, int *which)
{
	int nr = 0;

	*which = -1;
	for (text = skip_space(text); *text; text = skip_space(text)) {
		size_t len = strcspn(text, " \t");

		if (len == strlen(wanted) && !strncmp(text, wanted, len))
			*which = nr;
		text += len;
		nr++;
	}
	return nr;
}

static int read_positions(struct reader *r, const char *text)
{
	r->nr_positions = find_word(text, "instr", &r->instr);
	if (r->instr < 0)
		return md_lines_fail(
			r->lines, r->err,
			"no instruction addresses: run callgrind with --dump-instr=yes");
	if (r->nr_positions > MAX_POSITIONS)
		return md_lines_fail(r->lines, r->err, "%d kinds of positions", r->nr_positions);
	return 0;
}

static int read_events(struct reader *r, const char *text)
{
	r->nr_events = find_word(text, "Ir", &r->ir);
	if (r->ir < 0)
		return md_lines_fail(r->lines, r->err,
				     "no event Ir (executed instructions) among '%.60s'",
				     skip_space(text));
	return 0;
}

static int read_totals(struct reader *r, const char *text)
{
	uint64_t value = 0;

	for (int i = 0; i <= r->ir; i++) {
		text = skip_space(text);
		if (get_number(&text, &value))
			return md_lines_fail(r->lines, r->err, "totals that are not numbers");
	}
	r->totals += value;
	r->have_totals = true;
	return 0;
}

/* ---- names --------------------------------------------------------------------------------- */

/* Reads "(3) /usr/bin/x", "(3)" or "/usr/bin/x" and sets r->module. */
static int read_object(struct reader *r, const char *text)
{
	uint64_t number = 0;
	bool numbered = false;
	uint32_t module = NO_MODULE;
	char *end;
	int ret;

	if (text[0] == '(' && isdigit((unsigned char)text[1])) {
		errno = 0;
		number = strtoull(text + 1, &end, 10);
		if (errno || *end != ')' || number >= MAX_NAMES)
			return md_lines_fail(r->lines, r->err, "not a compressed name");
		text = skip_space(end + 1);
		numbered = true;
	}
	if (numbered && !*text) {
		if (number >= r->nr_names || !r->names[number])
			return md_lines_fail(r->lines, r->err, "object (%llu) was never named",
					     (unsigned long long)number);
		module = r->names[number] - 1;
	} else if (*text && strcmp(text, "???")) {
		ret = md_import_find_file(r->import, text, &module, r->err);
		if (ret)
			return ret;
	} else {
		module = NO_MODULE - 1; /* NO_MODULE + 1 would be 0, which means "not seen" */
	}
	if (numbered && *text) {
		if (mp_grow_zeroed(r->names, r->nr_names, (size_t)number + 1))
			return mp_err_set(r->err, ENOMEM, "out of memory");
		r->names[number] = module + 1;
	}
	r->module = module;
	return 0;
}

/* ---- costs --------------------------------------------------------------------------------- */

/*
 * Reads the positions at the start of a cost line; they may be relative to the line before.
 * *@pos moves behind them.
 */
static int read_subpositions(struct reader *r, const char **pos, uint64_t *positions)
{
	const char *p = *pos;

	for (int i = 0; i < r->nr_positions; i++) {
		uint64_t value, next = r->last[i];
		char sign;

		p = skip_space(p);
		sign = *p;
		if (sign == '*') {
			p++;
			if (*p && *p != ' ' && *p != '\t')
				return md_lines_fail(r->lines, r->err, "not a position");
		} else {
			if (sign == '+' || sign == '-')
				p++;
			if (get_number(&p, &value))
				return md_lines_fail(r->lines, r->err, "not a position");
			if (sign == '+'	  ? __builtin_add_overflow(next, value, &next)
			    : sign == '-' ? __builtin_sub_overflow(next, value, &next)
					  : (next = value, false))
				return md_lines_fail(r->lines, r->err, "a position beyond the end");
		}
		positions[i] = next;
	}
	*pos = p;
	return 0;
}

/* ---- transfers ----------------------------------------------------------------------------- */

/* Reads "calls=COUNT TARGET", "jump=COUNT TARGET" or "jcnd=TAKEN/EXECUTED TARGET". */
static int read_transfer(struct reader *r, const char *text, bool is_call, bool is_conditional)
{
	uint64_t to[MAX_POSITIONS], executed;
	const char *p = text;
	char *end;
	int ret;

	if (r->nr_positions <= 0)
		return md_lines_fail(r->lines, r->err, "a transfer before 'positions:'");
	if (is_conditional) {
		errno = 0;
		r->pending_count = isdigit((unsigned char)*p) ? strtoull(p, &end, 10) : 0;
		if (!isdigit((unsigned char)*p) || errno || *end != '/')
			return md_lines_fail(r->lines, r->err, "not 'jcnd=TAKEN/EXECUTED'");
		p = end + 1;
		if (get_number(&p, &executed) || executed < r->pending_count)
			return md_lines_fail(r->lines, r->err, "not 'jcnd=TAKEN/EXECUTED'");
	} else if (get_number(&p, &r->pending_count)) {
		return md_lines_fail(r->lines, r->err, "not a number of transfers");
	}
	memcpy(to, r->last, sizeof(to));
	ret = read_subpositions(r, &p, to);
	if (ret)
		return ret;
	r->pending = is_call ? PENDING_CALL : PENDING_JUMP;
	r->pending_to = to[r->instr];
	r->pending_module = is_call && r->called_module != NO_MODULE ? r->called_module : r->module;
	r->called_module = NO_MODULE;
	r->have_jumps |= !is_call;
	return 0;
}

/*
 * Finds the target of the transfer from @from. Return: false: not known, or in another object.
 * For a call through a stub (PLT), callgrind names the function behind the stub, though the
 * call goes to the stub. Calls that reach another object are skipped, because the first one
 * through a stub is counted twice (once for the dynamic linker). Callgrind does not say if a
 * jump leaves the object, so an indirect jump to another function is not used.
 */
static bool find_target(struct reader *r, uint64_t from, uint64_t *to)
{
	struct mp_insn insn;

	*to = r->pending_to;
	if (r->pending == PENDING_JUMP && !r->other_function)
		return true;
	if (r->pending_module != r->module)
		return false;
	if (!md_import_insn_at(&r->import->modules[r->module], from, &insn))
		return true;
	switch (insn.kind) {
	case MP_INSN_CALL:
	case MP_INSN_JUMP:
	case MP_INSN_COND:
		if (r->pending == PENDING_CALL)
			*to = insn.target;
		return true;
	default: return r->pending == PENDING_CALL;
	}
}

static int add_pending(struct reader *r)
{
	uint64_t from = r->last[r->instr], to, count = r->pending_count;
	int ret;

	if (!r->have_object)
		return md_lines_fail(r->lines, r->err, "a transfer before any 'ob='");
	if (r->module < NO_MODULE - 1 && find_target(r, from, &to))
		ret = md_import_add_transfer(r->import, r->module, from, to, count, 0, r->err);
	else
		ret = md_import_count_transfer(r->import, &r->import->transfers.outside, count,
					       r->err);
	r->pending = PENDING_NOTHING;
	r->other_function = false;
	return ret;
}

static int read_cost_line(struct reader *r)
{
	const char *p = r->lines->line;
	uint64_t value, count = 0;
	int n, ret;

	if (r->nr_positions <= 0 || r->nr_events <= 0)
		return md_lines_fail(r->lines, r->err, "costs before 'positions:' and 'events:'");
	ret = read_subpositions(r, &p, r->last);
	if (ret)
		return ret;
	/* Missing costs at the end are 0. A jump's line has no costs. */
	for (n = 0; *(p = skip_space(p)); n++) {
		if (n == r->nr_events || get_number(&p, &value))
			return md_lines_fail(r->lines, r->err, "not a cost");
		if (n == r->ir)
			count = value;
	}
	if (r->pending)
		return add_pending(r);
	if (!count)
		return 0;
	if (!r->have_object)
		return md_lines_fail(r->lines, r->err, "costs before any 'ob='");
	if (__builtin_add_overflow(r->sum, count, &r->sum))
		return md_lines_fail(r->lines, r->err, "costs beyond 64 bits");
	if (r->module >= NO_MODULE - 1)
		return md_import_add_unattributed(r->import, MP_UNATTR_ANONYMOUS, count, r->err);
	return md_import_add(r->import, r->module, r->last[r->instr], count, r->err);
}

static bool starts(const char *line, const char *with, const char **rest)
{
	size_t len = strlen(with);

	if (strncmp(line, with, len))
		return false;
	*rest = line + len;
	return true;
}

/* Lines "key: value" and "key=value" that do not matter for counts per address. */
static bool is_ignored(const char *line)
{
	static const char *const ignored[] = {
		"fl=",	   "fi=",      "fe=",	   "fn=",  "cfl=",  "cfi=",
		"cfn=",	   "version:", "pid:",	   "cmd:", "part:", "desc:",
		"thread:", "event:",   "summary:", "rec:", "frfn=",
	};
	const char *rest;

	for (size_t i = 0; i < sizeof(ignored) / sizeof(ignored[0]); i++)
		if (starts(line, ignored[i], &rest))
			return true;
	return !*line || *line == '#';
}

/* Reads the object of the next calls= line, which may be named here first. */
static int read_called_object(struct reader *r, const char *text)
{
	uint32_t module = r->module;
	int ret = read_object(r, text);

	r->called_module = r->module;
	r->module = module;
	return ret;
}

static int read_line(struct reader *r)
{
	const char *line = r->lines->line, *rest;

	if (isdigit((unsigned char)*line) || *line == '+' || *line == '-' || *line == '*')
		return read_cost_line(r);
	/* A position line must follow calls=, jump= or jcnd=. */
	if (r->pending == PENDING_CALL)
		return md_lines_fail(r->lines, r->err, "'calls=' without its costs");
	if (r->pending)
		return md_lines_fail(r->lines, r->err, "'jump=' without its positions");
	if (starts(line, "ob=", &rest)) {
		r->have_object = true;
		return read_object(r, rest);
	}
	if (starts(line, "cob=", &rest))
		return read_called_object(r, rest);
	if (starts(line, "jfi=", &rest) || starts(line, "jfn=", &rest)) {
		r->other_function = true;
		return 0;
	}
	if (starts(line, "calls=", &rest))
		return read_transfer(r, rest, true, false);
	if (starts(line, "jump=", &rest))
		return read_transfer(r, rest, false, false);
	if (starts(line, "jcnd=", &rest))
		return read_transfer(r, rest, false, true);
	if (starts(line, "positions:", &rest))
		return read_positions(r, rest);
	if (starts(line, "events:", &rest))
		return read_events(r, rest);
	if (starts(line, "totals:", &rest))
		return read_totals(r, rest);
	if (starts(line, "creator:", &rest)) {
		r->counted = !strncmp(skip_space(rest), "callgrind-", strlen("callgrind-"));
		return 0;
	}
	if (is_ignored(line))
		return 0;
	return md_lines_fail(r->lines, r->err, "not a line of a callgrind file");
}

int md_import_callgrind(struct md_import *import, struct md_lines *lines, struct mp_err *err)
{
	struct reader r = {.import = import,
			   .lines = lines,
			   .err = err,
			   .instr = -1,
			   .ir = -1,
			   .module = NO_MODULE,
			   .called_module = NO_MODULE};
	int ret;

	while ((ret = md_lines_next(lines, err)) > 0) {
		ret = read_line(&r);
		if (ret)
			break;
	}
	free(r.names);
	if (ret)
		return ret;
	/* Without jumps, the calls alone would look as if no branch was ever taken. */
	if (!r.have_jumps)
		md_import_forget_transfers(import);
	/*
	 * For an optimised file, the original's counts are only approximate, since branches
	 * were added and removed.
	 */
	for (uint32_t i = 0; i < import->nr_modules; i++)
		import->modules[i].exact = r.counted && !import->modules[i].map;
	/* Callgrind ends each part with its totals. If they are missing, the file is incomplete. */
	if (!r.have_totals)
		return mp_err_set(err, EBADMSG, "%s: cut short: no 'totals:' line", lines->name);
	if (r.sum != r.totals)
		return mp_err_set(err, EBADMSG, "%s: the costs add up to %llu, 'totals:' says %llu",
				  lines->name, (unsigned long long)r.sum,
				  (unsigned long long)r.totals);
	return 0;
}
