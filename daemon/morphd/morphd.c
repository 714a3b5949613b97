// SPDX-License-Identifier: Apache-2.0
/*
 * morphd - samples what runs, attributes the samples to modules and stores the counts.
 *
 * This file has main() only. Exit status: 0 done, 1 failed, 2 usage; `morphd run` exits as its
 * command did.
 */
#include <argp.h>
#include <errno.h>
#include <malloc.h>
#include <stdio.h>
#include <string.h>

#include "daemon/audit/audited_file.h"
#include "daemon/module/modread.h"
#include "daemon/module/sandbox.h"
#include "daemon/morphd/message.h"
#include "daemon/morphd/options.h"
#include "daemon/morphd/run.h"
#include "daemon/morphd/service.h"
#include "libprof/cli/exit_status.h"
#include "libprof/cli/program.h"

/*
 * Arrays of this size are mappings of their own, and go back to the system when they are freed: libbpf's
 * types of the kernel, a reader's reply, a file's unwind rows. Otherwise malloc() raises the limit to the
 * size of the first large array, and holes between smaller ones stay.
 */
#define LARGE_ARRAY (64 << 10)

int main(int argc, char **argv)
{
	struct md_options o;
	struct mp_err err = {{0}};
	int status = 0, ret;

	md_sandbox_reader(argv, MD_SANDBOX_MODULES, md_modread_file);
	md_sandbox_reader(argv, MD_SANDBOX_ROWS, md_modread_file_with_rows);
	md_sandbox_reader(argv, MD_SANDBOX_AUDITS, md_audited_file_work);
	md_sandbox_reader(argv, MD_SANDBOX_WAYS, md_ways_work);
	mallopt(M_MMAP_THRESHOLD, LARGE_ARRAY);
	mallopt(M_TRIM_THRESHOLD, LARGE_ARRAY);
	mp_program_init("morphd");
	md_options_parse(argc, argv, &o);
	ret = o.is_run ? md_run_main(&o, &status, &err) : md_service_main(&o, &status, &err);
	if (fflush(stdout) && !ret)
		ret = mp_err_set(&err, errno, "standard output: %s", strerror(errno));
	if (ret)
		md_message(err.msg);
	return status ? status : ret ? MP_EXIT_FAILED : MP_EXIT_DONE;
}
