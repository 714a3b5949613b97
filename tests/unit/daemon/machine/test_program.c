// SPDX-License-Identifier: Apache-2.0
/* test_program - names of programs: paths, commands, file names, packages, build-ids. */
#include <sys/stat.h>

#include "daemon/machine/program.h"
#include "tests/unit/scratch.h"

static char path[8][8192];

/* Copies of programs that every machine has; each gets another build by other code bytes. */
static void copy(const char *from, const char *to)
{
	char command[16384];

	snprintf(command, sizeof(command), "cp -L '%s' '%s' && chmod 755 '%s'", from, to, to);
	ck_assert_int_eq(system(command), 0);
}

static void setup(void)
{
	FILE *list;

	scratch_make();
	for (int i = 0; i < 4; i++) {
		static const char *const names[] = {"bin", "lib", "info", "other"};

		snprintf(path[0], sizeof(path[0]), "%s/%s", dir, names[i]);
		ck_assert_int_eq(mkdir(path[0], 0755), 0);
	}
	snprintf(path[0], sizeof(path[0]), "%s/bin/tool", dir);
	snprintf(path[1], sizeof(path[1]), "%s/other/tool", dir);
	snprintf(path[2], sizeof(path[2]), "%s/other/second", dir);
	copy("/proc/self/exe", path[0]);
	copy("/bin/true", path[1]);
	copy("/bin/false", path[2]);
	snprintf(path[3], sizeof(path[3]), "%s/bin/script", dir);
	list = fopen(path[3], "w");
	fputs("#!/bin/sh\n", list);
	fclose(list);
	chmod(path[3], 0755);
	snprintf(path[4], sizeof(path[4]), "%s/info/two-tools.list", dir);
	list = fopen(path[4], "w");
	fprintf(list, "/.\n%s\n%s\n%s\n/no/such/file\n", path[1], path[2], path[3]);
	fclose(list);
	snprintf(path[4], sizeof(path[4]), "%s/status", dir);
	list = fopen(path[4], "w");
	for (int i = 0; i < 2; i++)
		fprintf(list,
			"Package: %s\nStatus: install ok installed\nVersion: 1\nArchitecture: amd64\n"
			"%sMaintainer: x <x>\nDescription: x\n\n",
			i ? "libone" : "two-tools", i ? "Multi-Arch: same\n" : "");
	fclose(list);
	snprintf(path[4], sizeof(path[4]), "%s/info/format", dir);
	list = fopen(path[4], "w");
	fputs("1\n", list);
	fclose(list);
	snprintf(path[4], sizeof(path[4]), "%s/info/libone:amd64.list", dir);
	list = fopen(path[4], "w");
	fprintf(list, "/.\n%s\n", path[2]);
	fclose(list);
}

static int find(const char *name, const struct mp_module *modules, size_t nr, char *out,
		struct mp_err *err)
{
	char bin[8192];
	AUTO(md_program_fini) struct md_program program = {0};
	struct md_program_search search = {
		.commands = bin, .dpkg_admin = dir, .modules = modules, .nr_modules = nr};
	int r;

	snprintf(bin, sizeof(bin), "/no/such/directory:%s/bin", dir);
	r = md_program_find(&search, name, &program, err);
	snprintf(out, 8192, "%s%s", r ? "" : program.path, !r && program.gone ? " gone" : "");
	return r;
}

static struct mp_module module_of(char *at)
{
	AUTO(md_program_fini) struct md_program program = {0};
	struct mp_module module = {.kind = MP_MODULE_FILE, .path = at, .nr_samples = 5};

	ck_assert_int_eq(md_program_read(at, &program, NULL), 0);
	module.id = program.id;
	return module;
}

FIXTURE(setup, scratch_remove);

TEST(program_is_found_by_path_and_command)
{
	char got[8192];

	ck_assert_int_eq(find(path[1], NULL, 0, got, &err), 0);
	ck_assert_str_eq(got, path[1]);
	ck_assert_int_eq(find("tool", NULL, 0, got, &err), 0);
	ck_assert_str_eq(got, path[0]);
	ck_assert_int_eq(find("script", NULL, 0, got, &err), -ENOEXEC);
	ck_assert_ptr_nonnull(strstr(err.msg, "interpreter"));
	ck_assert_int_eq(find(path[3], NULL, 0, got, &err), -ENOEXEC);
	ck_assert_int_eq(find("/no/such/file", NULL, 0, got, &err), -ENOENT);
	ck_assert_int_eq(find("nothing-of-this-name", NULL, 0, got, &err), -ENOENT);
	ck_assert_int_eq(find("", NULL, 0, got, &err), -ENOENT);
}

TEST(program_is_found_by_package)
{
	char got[8192];

	ck_assert_int_eq(find("libone", NULL, 0, got, &err), 0);
	ck_assert_str_eq(got, path[2]);
	ck_assert_int_eq(find("package:libone", NULL, 0, got, &err), 0);
	/* Two programs: the message has both, but not the script. */
	ck_assert_int_eq(find("two-tools", NULL, 0, got, &err), -ENOTUNIQ);
	ck_assert_ptr_nonnull(strstr(err.msg, path[1]));
	ck_assert_ptr_nonnull(strstr(err.msg, path[2]));
	ck_assert_ptr_null(strstr(err.msg, path[3]));
	ck_assert_int_eq(find("package:../info/two-tools", NULL, 0, got, &err), -ENOENT);
	ck_assert_int_eq(find("package:tool", NULL, 0, got, &err), -ENOENT);
}

TEST(program_is_found_by_its_name_in_the_store)
{
	char gone[] = "/gone/away/old", got[8192];
	struct mp_module modules[] = {module_of(path[2]), module_of(path[1]), module_of(path[2])};

	modules[2].path = gone;
	ck_assert_int_eq(find("second", modules, 3, got, &err), 0);
	ck_assert_str_eq(got, path[2]);
	ck_assert_int_eq(find("old", modules, 3, got, &err), 0);
	ck_assert_str_eq(got, "/gone/away/old gone");
	/* A command goes before a file of the same name elsewhere. */
	ck_assert_int_eq(find("tool", modules, 3, got, &err), 0);
	ck_assert_str_eq(got, path[0]);
}

TEST(program_is_found_by_build_id)
{
	struct mp_module modules[] = {module_of(path[1]), module_of(path[2])};
	char hex[2 * MP_BUILD_ID_MAX + 1], got[8192];

	mp_id_format_build_id(&modules[0].id, hex);
	if (strlen(hex) < 12)
		MORPH_SKIP("/bin/true has no build-id");
	ck_assert_int_eq(find(hex, modules, 2, got, &err), 0);
	ck_assert_str_eq(got, path[1]);
	hex[10] = '\0';
	ck_assert_int_eq(find(hex, modules, 2, got, &err), 0);
	hex[3] = '\0';
	ck_assert_int_eq(find(hex, modules, 2, got, &err), -ENOENT);
	modules[1].id = modules[0].id;
	modules[1].id.text_hash++;
	mp_id_format_build_id(&modules[0].id, hex);
	ck_assert_int_eq(find(hex, modules, 2, got, &err), -ENOTUNIQ);
}
