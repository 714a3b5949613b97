// SPDX-License-Identifier: Apache-2.0
/* meter - saves and loads a work meter; see meter.h. */
#include "daemon/everyday/meter.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>

#include "libprof/cli/json.h"

int md_meter_save(const char *path, const struct mp_meter *m, struct mp_err *err)
{
	json_t *root = json_pack("{s:b, s:f, s:[]}", "usable", m->usable, "deviation",
				 isfinite(m->deviation) ? m->deviation : -1, "weights");

	for (size_t i = 0; i < m->nr; i++)
		json_array_append_new(json_object_get(root, "weights"), json_real(m->weight[i]));
	return mp_json_save(root, path, err);
}

bool md_meter_load(const char *path, struct mp_meter *m)
{
	json_t *root = json_load_file(path, 0, NULL);
	json_t *weights = json_object_get(root, "weights");
	bool fine;

	*m = (struct mp_meter){0};
	m->usable = json_is_true(json_object_get(root, "usable"));
	m->deviation = json_number_value(json_object_get(root, "deviation"));
	m->nr = json_array_size(weights);
	fine = m->nr >= 1 && m->nr <= MP_METER_MAX && m->deviation >= 0 && m->deviation < 1e3;
	for (size_t i = 0; fine && i < m->nr; i++) {
		m->weight[i] = json_number_value(json_array_get(weights, i));
		fine = m->weight[i] > 0 && m->weight[i] < 1e9;
	}
	json_decref(root);
	return fine;
}

struct md_meter_words md_meter_words(const struct mp_meter *m)
{
	struct md_meter_words words;

	if (m->nr)
		snprintf(words.text, sizeof(words.text),
			 "%zu of its counters tell its work within %.0f %%", m->nr,
			 100 * m->deviation);
	else
		snprintf(words.text, sizeof(words.text), "no counters of it tell its work");
	return words;
}
