// SPDX-License-Identifier: Apache-2.0
/* variants - names and hashes of a job's versions; see variants.h. */
#include "daemon/worker/variants.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "libprof/cli/json.h"

static const char *const names[MD_NR_VARIANTS] = {
	[MD_COUNTING] = "counting",	     [MD_METERED_ORIGINAL] = "metered-original",
	[MD_METERED_NEW] = "metered-new",    [MD_NEW] = "output",
	[MD_NEW_RUNNING] = "output-running",
};

static const char *const words[MD_NR_VARIANTS] = {
	[MD_ORIGINAL] = "the original",
	[MD_COUNTING] = "the version that counts",
	[MD_METERED_ORIGINAL] = "the metered original",
	[MD_METERED_NEW] = "the metered new version",
	[MD_NEW] = "the new version",
	[MD_NEW_RUNNING] = "the new version",
};

const char *md_variant_name(enum md_variant variant)
{
	return names[variant];
}

const char *md_variant_words(enum md_variant variant)
{
	return words[variant];
}

struct md_work_path md_variant_counts(const struct md_work_dir *dir, enum md_variant variant)
{
	char name[64];

	snprintf(name, sizeof(name), "%s.counts", names[variant]);
	return md_work_path(dir, name);
}

void md_variants_load(const struct md_work_dir *dir, struct md_variants *out)
{
	json_t *root = json_load_file(md_work_path(dir, "variants").text, 0, NULL);

	*out = (struct md_variants){0};
	for (int i = 0; i < MD_NR_VARIANTS; i++) {
		const char *text = names[i] ? json_string_value(json_object_get(root, names[i]))
					    : NULL;

		if (text && strlen(text) < MP_JOB_HASH_MAX)
			strcpy(out->hash[i], text);
	}
	json_decref(root);
}

int md_variants_note(const struct md_work_dir *dir, enum md_variant variant, const char *hash,
		     struct mp_err *err)
{
	struct md_work_path path = md_work_path(dir, "variants");
	json_t *root = json_load_file(path.text, 0, NULL);

	if (!json_is_object(root)) {
		json_decref(root);
		root = json_object();
	}
	json_object_set_new(root, names[variant], json_string(hash));
	return mp_json_save(root, path.text, err);
}

enum md_variant md_variants_find(const struct md_variants *variants, const char *hash)
{
	for (int i = MD_ORIGINAL + 1; i < MD_NR_VARIANTS; i++)
		if (variants->hash[i][0] && !strcmp(variants->hash[i], hash))
			return (enum md_variant)i;
	return MD_ORIGINAL;
}
