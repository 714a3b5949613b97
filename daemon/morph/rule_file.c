// SPDX-License-Identifier: Apache-2.0
/* rule_file - files of watch.d; see rule_file.h. */
#include "daemon/morph/rule_file.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/stats/interrupt.h"
#include "libprof/base/defaults.h"
#include "libprof/base/infile.h"
#include "libprof/base/outfile.h"

/* The first line of a rule that may be replaced and removed. */
#define HEADING "# Written by morph watch."
#define PACKAGE "package:"

static bool is_name_character(char c)
{
	return isalnum((unsigned char)c) || c == '.' || c == '_' || c == '-';
}

bool md_rule_name_is_valid(const char *name)
{
	size_t len = strlen(name);

	for (size_t i = 0; i < len; i++)
		if (!is_name_character(name[i]))
			return false;
	return len && len < 100 && name[0] != '.';
}

void md_rule_name_of(const char *program, char *buf, size_t size)
{
	const char *slash = strrchr(program, '/'), *from = slash ? slash + 1 : program;
	size_t n = 0;

	if (!strncmp(program, PACKAGE, strlen(PACKAGE)))
		from = program + strlen(PACKAGE);
	/* A pattern may end in a star, as /opt/db/bin/ and a star do: name the rule after the directory. */
	if (*from == '*' && slash)
		from = program + 1;
	for (; *from && n + 1 < size && n < 99; from++)
		if (is_name_character(*from) ? n || *from != '.' : n && buf[n - 1] != '-')
			buf[n++] = is_name_character(*from) ? *from : '-';
	while (n && buf[n - 1] == '-')
		n--;
	buf[n] = '\0';
	if (!n)
		snprintf(buf, size, "rule");
}

/* Did md_rule_file_write() write it? Return: 1, 0, -ENOENT, -errno. */
static int is_ours(const char *file)
{
	char line[sizeof(HEADING) + 1] = "";
	struct mp_err ignored;
	FILE *in;
	int ours = mp_infile_stream(file, &in, &ignored);

	if (ours)
		return ours;
	ours = fgets(line, sizeof(line), in) && !strncmp(line, HEADING, strlen(HEADING));
	fclose(in);
	return ours;
}

/* As words.h reads it. */
static void put_word(FILE *out, const char *word)
{
	if (*word && !word[strspn(word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
					"0123456789/._-+=:,@%")]) {
		fputs(word, out);
		return;
	}
	fputc('\'', out);
	for (; *word; word++)
		fputs(*word == '\'' ? "'\\''" : (char[2]){*word, '\0'}, out);
	fputc('\'', out);
}

static void put_command(FILE *out, const char *key, const struct md_rule_text *rule)
{
	fprintf(out, "%s =", key);
	for (int i = 0; i < rule->nr_command; i++) {
		fputc(' ', out);
		put_word(out, rule->command[i]);
	}
	fputc('\n', out);
}

static void put_rule(FILE *out, const struct md_rule_text *rule)
{
	fputs(HEADING " Edit it, or remove it with `morph watch rm'; see morph.conf(5).\n", out);
	for (size_t i = 0; i < rule->nr_programs; i++) {
		const char *p = rule->programs[i];

		if (!strncmp(p, PACKAGE, strlen(PACKAGE)))
			fprintf(out, "package = %s\n", p + strlen(PACKAGE));
		else
			fprintf(out, "program = %s\n", p);
	}
	if (rule->mode)
		fprintf(out, "mode = %s\n", rule->mode);
	if (rule->command) {
		put_command(out, "train", rule);
		put_command(out, "command", rule);
	}
	if (rule->unit)
		fprintf(out, "unit = %s\n", rule->unit);
	if (rule->user)
		fprintf(out, "user = %s\n", rule->user);
}

static bool has_line_break(const struct md_rule_text *rule)
{
	bool has = (rule->unit && strpbrk(rule->unit, "\n\r")) ||
		   (rule->user && strpbrk(rule->user, "\n\r"));

	for (size_t i = 0; i < rule->nr_programs; i++)
		has |= strpbrk(rule->programs[i], "\n\r") != NULL;
	for (int i = 0; i < rule->nr_command; i++)
		has |= strpbrk(rule->command[i], "\n\r") != NULL;
	return has;
}

/* A new user has no ~/.config either. */
static int make_parent(const char *path, struct mp_err *err)
{
	const char *slash = strrchr(path, '/');
	char parent[MP_PATH_ROOM];

	if (!slash || slash == path)
		return 0;
	snprintf(parent, sizeof(parent), "%.*s", (int)(slash - path), path);
	if (mkdir(parent, geteuid() ? 0700 : 0755) && errno != EEXIST)
		return mp_err_set(err, errno, "%s: cannot make the directory: %s", parent,
				  strerror(errno));
	return 0;
}

static int make_directory(const char *path, struct mp_err *err)
{
	if (mkdir(path, geteuid() ? 0700 : 0755) && errno != EEXIST)
		return mp_err_set(err, errno, "%s: cannot make the directory: %s", path,
				  strerror(errno));
	return 0;
}

int md_policy_make_dir(const char *dir, struct mp_err *err)
{
	int r = make_parent(dir, err);

	return r ? r : make_directory(dir, err);
}

/* The rule that is replaced, until the new one is accepted. The policy reads no file of such a name. */
static bool name_former(const char *file, char *buf, size_t size)
{
	return snprintf(buf, size, "%s~", file) < (int)size;
}

void md_rule_file_settle(const char *file, bool accepted)
{
	char former[MP_PATH_ROOM];

	if (!name_former(file, former, sizeof(former)))
		return;
	if (accepted)
		unlink(former);
	else if (rename(former, file))
		unlink(file);
}

int md_rule_file_write(const char *dir, const char *name, const struct md_rule_text *rule,
		       char *file, size_t size, struct mp_err *err)
{
	struct mp_outfile out;
	char folder[MP_PATH_ROOM], former[MP_PATH_ROOM];
	int r;

	if (has_line_break(rule))
		return mp_err_set(err, EINVAL, "a rule cannot hold a text with a line break");
	if (snprintf(folder, sizeof(folder), "%s/watch.d", dir) >= (int)sizeof(folder) ||
	    snprintf(file, size, "%s/%s.conf", folder, name) >= (int)size ||
	    !name_former(file, former, sizeof(former)))
		return mp_err_set(err, ENAMETOOLONG, "%s: the name is too long", dir);
	r = md_policy_make_dir(dir, err);
	if (!r)
		r = make_directory(folder, err);
	if (r)
		return r;
	if (!is_ours(file))
		return mp_err_set(err, EEXIST,
				  "%s: exists and was not written by morph watch; edit it, or give "
				  "another --name",
				  file);
	unlink(former);
	if (link(file, former) && errno != ENOENT)
		return mp_err_set(err, errno, "%s: cannot be kept: %s", file, strerror(errno));
	r = mp_outfile_open(file, md_interrupt_unlinks, &out, err);
	if (r)
		return r;
	/* The policy refuses a file that others can write. */
	fchmod(fileno(out.file), 0644);
	put_rule(out.file, rule);
	return mp_outfile_commit(&out, err);
}

int md_rule_file_remove(const char *file, struct mp_err *err)
{
	int ours = is_ours(file);

	if (!ours)
		return mp_err_set(err, EPERM,
				  "%s: was not written by morph watch; remove it yourself", file);
	if (ours < 0 || unlink(file))
		return mp_err_set(err, ours < 0 ? -ours : errno, "%s: cannot remove: %s", file,
				  strerror(ours < 0 ? -ours : errno));
	return 0;
}
