// SPDX-License-Identifier: Apache-2.0
/* select - reads lists of functions and finds these in a file. Called by morph-optimize,
 * explain and optimize. */
#include "editor/evidence/select.h"

#include <errno.h>
#include <fnmatch.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libprof/base/grow.h"
#include "libprof/base/infile.h"
#include "libprof/base/settings.h"

struct me_word {
	char *text;
	bool from_file;
};

static int add_word(struct me_words *words, const char *text, size_t len, bool from_file,
		    struct mp_err *err)
{
	if (!len)
		return 0;
	if (mp_resize(words->words, words->nr + 1))
		return mp_err_set(err, ENOMEM, "out of memory");
	words->words[words->nr] = (struct me_word){strndup(text, len), from_file};
	return words->words[words->nr++].text ? 0 : mp_err_set(err, ENOMEM, "out of memory");
}

static int add_file(struct me_words *words, const char *path, struct mp_err *err)
{
	char *line = NULL;
	size_t room = 0;
	FILE *in;
	int rc = mp_infile_stream(path, &in, err), got = 0;

	if (rc)
		return rc;
	while (!rc && (got = mp_infile_line(in, &line, &room)) > 0) {
		char *word = mp_settings_trim(line);

		if (*word != '#')
			rc = add_word(words, word, strlen(word), true, err);
	}
	if (got < 0)
		rc = mp_err_set(err, -got, "%s: %s", path, mp_infile_why(got));
	free(line);
	fclose(in);
	return rc;
}

int me_words_add(struct me_words *words, const char *text, struct mp_err *err)
{
	int rc = 0;

	words->given = true;
	while (!rc && *text) {
		size_t len = strcspn(text, ",");

		if (*text == '@') {
			char *path = strndup(text + 1, len - 1);

			rc = path ? add_file(words, path, err)
				  : mp_err_set(err, ENOMEM, "out of memory");
			free(path);
		} else {
			rc = add_word(words, text, len, false, err);
		}
		text += len + (text[len] == ',');
	}
	return rc;
}

void me_words_fini(struct me_words *words)
{
	for (size_t i = 0; i < words->nr; i++)
		free(words->words[i].text);
	free(words->words);
	*words = (struct me_words){0};
}

const char *me_words_text(const struct me_words *words, size_t i, bool *from_file)
{
	*from_file = words->words[i].from_file;
	return words->words[i].text;
}

static bool parse_address(const char *text, uint64_t *vaddr)
{
	char *end;

	if (text[0] != '0' || (text[1] | 0x20) != 'x')
		return false;
	errno = 0;
	*vaddr = strtoull(text, &end, 16);
	return !errno && !*end && end > text + 2;
}

/* The function that starts at @vaddr, or MP_NONE. */
static uint32_t starts_at(const struct mp_cfg *cfg, uint64_t vaddr)
{
	uint32_t f = mp_cfg_func_at(cfg, vaddr);

	return f != MP_NONE && cfg->funcs[f].vaddr == vaddr ? f : MP_NONE;
}

/* A function may have several symbols; the analysis keeps one, but all of them count here. */
static bool select_by_name(const struct mp_cfg *cfg, const char *pattern, unsigned char *chosen)
{
	const struct mp_elf *elf = cfg->elf;
	bool found = false;

	for (uint32_t i = 0; i < elf->nr_symbols; i++) {
		const struct mp_symbol *s = &elf->symbols[i];
		uint32_t f;

		if (!s->name || !*s->name || fnmatch(pattern, s->name, 0))
			continue;
		f = starts_at(cfg, s->vaddr);
		if (f == MP_NONE)
			continue;
		chosen[f] = 1;
		found = true;
	}
	/* Functions of stripped files have empty names. */
	for (uint32_t f = 0; f < cfg->nr_funcs && !fnmatch(pattern, "", 0); f++)
		if (!*cfg->funcs[f].name) {
			chosen[f] = 1;
			found = true;
		}
	return found;
}

bool me_select_word(const struct mp_cfg *cfg, const char *text, unsigned char *chosen)
{
	uint64_t vaddr;
	uint32_t f;

	if (!parse_address(text, &vaddr))
		return select_by_name(cfg, text, chosen);
	f = mp_cfg_func_at(cfg, vaddr);
	if (f != MP_NONE)
		chosen[f] = 1;
	return f != MP_NONE;
}

int me_select_functions(const struct mp_cfg *cfg, const struct me_words *words,
			unsigned char *chosen, struct mp_err *err)
{
	for (size_t i = 0; i < words->nr; i++) {
		const struct me_word *word = &words->words[i];

		if (!me_select_word(cfg, word->text, chosen) && !word->from_file)
			return mp_err_set(err, ENOENT, "there is no function '%s'", word->text);
	}
	return 0;
}
