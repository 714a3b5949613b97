// SPDX-License-Identifier: Apache-2.0
/* rewrite - runs the editor in memory; see rewrite.h. */
#include "tests/support/rewrite.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "editor/evidence/eligible.h"
#include "editor/emit/emit.h"
#include "editor/evidence/redirect.h"
#include "editor/layout/plan_all.h"

static bool read_file(const char *path, struct rewrite_bytes *out)
{
	FILE *file = fopen(path, "rb");
	bool done = false;

	if (!file)
		return false;
	fseek(file, 0, SEEK_END);
	out->size = (size_t)ftell(file);
	rewind(file);
	out->data = malloc(out->size + 1);
	done = out->data && fread(out->data, 1, out->size, file) == out->size;
	fclose(file);
	return done;
}

bool rewrite_compile(const char *command, struct rewrite_bytes *out)
{
	const char *dir = getenv("TMPDIR");
	char path[256], line[1024];
	bool done = false;
	int fd;

	*out = (struct rewrite_bytes){0};
	snprintf(path, sizeof(path), "%s/morph-rewrite-XXXXXX", dir ? dir : "/tmp");
	fd = mkstemp(path);
	if (fd < 0)
		return false;
	close(fd);
	snprintf(line, sizeof(line), "%s -o %s 2>/dev/null", command, path);
	if (!system(line))
		done = read_file(path, out);
	unlink(path);
	if (!done) {
		free(out->data);
		*out = (struct rewrite_bytes){0};
	}
	return done;
}

struct rewrite_bytes rewrite_flatten(const struct me_output_parts *output)
{
	struct rewrite_bytes b = {calloc(1, output->size_bytes + 1), output->size_bytes};

	for (uint32_t i = 0; b.data && i < output->nr_parts; i++)
		if (output->parts[i].size)
			memcpy(b.data + output->parts[i].off, output->parts[i].bytes,
			       output->parts[i].size);
	return b;
}

uint8_t *rewrite_movable(const struct mp_cfg *cfg)
{
	struct me_eligible eligible = {0};
	uint8_t *movable = NULL;
	uint32_t nr = 0;

	if (!me_eligible_functions(cfg, 1, &eligible, NULL))
		movable = malloc(cfg->nr_funcs + 1);
	for (uint32_t f = 0; movable && f < cfg->nr_funcs; f++) {
		movable[f] = eligible.verdict[f] == ME_ELIGIBLE;
		nr += movable[f];
	}
	me_eligible_fini(&eligible);
	if (nr)
		return movable;
	free(movable);
	return NULL;
}

int rewrite_redirect(const struct mp_cfg *cfg, struct me_plan *plan, struct mp_err *err)
{
	struct me_pointers pointers;
	int rc = me_pointers_find(cfg, &pointers, err);

	if (rc)
		return rc;
	rc = me_redirects_plan(cfg, &pointers, plan, err);
	me_pointers_fini(&pointers);
	return rc;
}

int rewrite_emit_with_debug_file(const struct mp_cfg *cfg, const struct me_plan *plan,
				 const struct me_instrumentation *added, const struct mp_elf *debug,
				 const char *name, struct me_emitted *out, struct mp_err *err)
{
	struct me_emitter *emitter;
	int rc = me_emitter_new(cfg, plan, added, &emitter, err);

	if (!rc)
		rc = me_emitter_write(emitter, debug, name, out, err);
	me_emitter_free(emitter);
	return rc;
}

int rewrite_emit_instrumented(const struct mp_cfg *cfg, struct me_plan *plan,
			      const struct me_instrumentation *added, struct me_emitted *out,
			      struct mp_err *err)
{
	int rc = rewrite_redirect(cfg, plan, err);

	return rc ? rc : rewrite_emit_with_debug_file(cfg, plan, added, NULL, NULL, out, err);
}

int rewrite_emit(const struct mp_cfg *cfg, struct me_plan *plan, struct me_emitted *out,
		 struct mp_err *err)
{
	return rewrite_emit_instrumented(cfg, plan, NULL, out, err);
}

bool rewrite_all(const struct mp_elf *elf, const uint64_t *seed, struct rewrite_bytes *out)
{
	struct me_emitted emitted = {0};
	struct me_plan plan = {0};
	struct mp_cfg *cfg = NULL;
	uint8_t *movable = NULL;
	struct mp_err err;
	bool done = false;

	if (me_eligible_file(elf, &err) || mp_cfg_build(elf, NULL, &cfg, &err))
		goto out;
	movable = rewrite_movable(cfg);
	if (!movable || me_plan_all(cfg, movable, seed, &plan, &err) || !plan.nr_blocks ||
	    rewrite_emit(cfg, &plan, &emitted, &err))
		goto out;
	*out = rewrite_flatten(&emitted.output);
	done = out->data != NULL;
	me_emitted_fini(&emitted);
out:
	me_plan_fini(&plan);
	mp_cfg_free(cfg);
	free(movable);
	return done;
}
