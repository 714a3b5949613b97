// SPDX-License-Identifier: Apache-2.0
/* wishes - a list of adjustments; see wishes.h. */
#include "editor/refine/wishes.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "editor/layout/adjust_text.h"
#include "libprof/base/grow.h"

int me_wishes_add(struct me_wishes *wishes, const struct me_adjust *wish)
{
	if (mp_resize(wishes->list, wishes->nr + 1))
		return -ENOMEM;
	wishes->list[wishes->nr++] = *wish;
	return 0;
}

int me_wishes_copy(struct me_wishes *to, const struct me_wishes *from)
{
	int rc = 0;

	*to = (struct me_wishes){0};
	for (size_t i = 0; i < from->nr && !rc; i++)
		rc = me_wishes_add(to, &from->list[i]);
	if (rc)
		me_wishes_fini(to);
	return rc;
}

int me_wishes_replace(struct me_wishes *wishes, const struct me_adjust *wish)
{
	size_t kept = 0;

	for (size_t i = 0; i < wishes->nr; i++)
		if (wishes->list[i].vaddr != wish->vaddr)
			wishes->list[kept++] = wishes->list[i];
	wishes->nr = kept;
	return me_wishes_add(wishes, wish);
}

void me_wishes_fini(struct me_wishes *wishes)
{
	free(wishes->list);
	*wishes = (struct me_wishes){0};
}

/* How one wish is written: "loop=0". @buf holds ME_ADJUST_TEXT_MAX bytes. Return: @buf. */
static char *wish_text(const struct me_adjust *wish, char *buf)
{
	struct me_adjustment alone = {0};

	buf[0] = '\0';
	if (!me_adjustment_add(&alone, wish->kind, wish->bytes))
		me_adjust_format(&alone, wish->kind, buf);
	return buf;
}

char *me_wishes_format(const struct me_wishes *wishes)
{
	char *text = NULL, word[ME_ADJUST_TEXT_MAX];
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);

	if (!out)
		return NULL;
	for (size_t i = 0; i < wishes->nr; i++)
		fprintf(out, "%s0x%" PRIx64 ":%s", i ? " " : "", wishes->list[i].vaddr,
			wish_text(&wishes->list[i], word));
	if (fclose(out)) {
		free(text);
		return NULL;
	}
	return text;
}

static int parse_word(const char *word, struct me_adjust *wish, struct mp_err *err)
{
	size_t name_len;
	char *end;
	int rc = me_adjust_parse(word, &name_len, wish, err);

	if (rc)
		return rc;
	errno = 0;
	wish->vaddr = strtoull(word, &end, 16);
	if (errno || end != word + name_len || strncmp(word, "0x", 2) != 0)
		return mp_err_set(err, EINVAL, "'%s': not an adjustment of an address", word);
	return 0;
}

int me_wishes_parse(const char *text, struct me_wishes *out, struct mp_err *err)
{
	char *copy = strdup(text), *rest = copy, *word;
	struct me_adjust wish;
	int rc = copy ? 0 : mp_err_set(err, ENOMEM, "out of memory");

	*out = (struct me_wishes){0};
	while (!rc && (word = strsep(&rest, " "))) {
		if (!*word)
			continue;
		rc = parse_word(word, &wish, err);
		if (!rc && me_wishes_add(out, &wish))
			rc = mp_err_set(err, ENOMEM, "out of memory");
	}
	free(copy);
	if (rc)
		me_wishes_fini(out);
	return rc;
}
