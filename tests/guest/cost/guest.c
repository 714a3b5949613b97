// SPDX-License-Identifier: Apache-2.0
/*
 * guest - the init process of the cost test's guest: runs each work in each state, in a window
 * of the plugin's.
 *
 * Decides the order, and sends the host the windows' names and their numbers of samples.
 * Arguments, from the kernel's command line: cost_states= and cost_works= list what to do,
 * separated by commas; cost_share=N does 1/N of it; cost_symbols first sends the kernel's
 * symbols.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/io.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/guest/cost/guest.h"

#define DEBUG_PORT    0xe9
#define MODULES_START 0xffffffffc0000000ULL
#define MODULES_SIZE  0x3f000000

/* ---- messages to the host ------------------------------------------------- */

/*
 * Gives the I/O privilege back afterwards, because it makes the kernel do more at each
 * interrupt.
 */
static void say_bytes(const char *s, size_t size)
{
	iopl(3);
	__asm__ volatile("rep outsb" : "+S"(s), "+c"(size) : "d"(DEBUG_PORT) : "memory");
	iopl(0);
}

static void say_list(const char *format, va_list args)
{
	char line[512];
	int size = vsnprintf(line, sizeof(line) - 1, format, args);

	if (size > (int)sizeof(line) - 2)
		size = sizeof(line) - 2;
	line[size++] = '\n';
	say_bytes(line, (size_t)size);
}

void say(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	say_list(format, args);
	va_end(args);
}

static void power_off(void)
{
	sync();
	reboot(RB_POWER_OFF);
	for (;;)
		pause();
}

void die(const char *format, ...)
{
	va_list args;

	say_bytes("FAIL: ", 6);
	va_start(args, format);
	say_list(format, args);
	va_end(args);
	power_off();
	__builtin_unreachable();
}

/* ---- marks --------------------------------------------------------------- */

static unsigned char *code; /* executable memory for one mark and a return */

static void mark_value(unsigned char modrm, uint32_t value)
{
	code[0] = 0x0f;
	code[1] = 0x1f;
	code[2] = modrm;
	memcpy(code + 3, &value, sizeof(value));
	code[MARK_SIZE] = 0xc3;
	((void (*)(void))(uintptr_t)code)();
}

static void watch(uint64_t start, uint64_t size, enum mark_bit bit)
{
	mark_value(MARK_MODRM_START, (uint32_t)start);
	mark_value(MARK_MODRM_END, (uint32_t)(start + size));
	mark_value(MARK_MODRM, MARK_WATCH + (uint32_t)bit);
}

/* ---- symbols ------------------------------------------------------------- */

static const struct {
	const char *name;
	enum mark_bit bit;
} watched[] = {
	{"asm_sysvec_apic_timer_interrupt", MARK_BIT_ENTRY},
	{"asm_sysvec_irq_work", MARK_BIT_ENTRY},
	{"asm_sysvec_reschedule_ipi", MARK_BIT_ENTRY},
	{"asm_common_interrupt", MARK_BIT_ENTRY},
	{"asm_exc_page_fault", MARK_BIT_FAULT},
	{"asm_exc_int3", MARK_BIT_FAULT},
	{"update_process_times", MARK_BIT_TICK},
	{"perf_swevent_hrtimer", MARK_BIT_SAMPLE},
	{"__schedule", MARK_BIT_SCHED},
	{"__do_softirq", MARK_BIT_SOFTIRQ}, /* up to 6.6 */
	{"handle_softirqs", MARK_BIT_SOFTIRQ},
	{"irq_work_run", MARK_BIT_WORK},
};
#define NR_WATCHED (sizeof(watched) / sizeof(watched[0]))

static uint64_t addresses[NR_WATCHED];

/* Reads kallsyms: ADDRESS TYPE NAME, and [MODULE] for modules. @only: a module, or "". */
static void symbols_read(const char *only)
{
	FILE *in = fopen("/proc/kallsyms", "re");
	unsigned long long address;
	char type, name[256], line[512];
	size_t i;

	if (!in)
		die("/proc/kallsyms: %s", strerror(errno));
	while (fgets(line, sizeof(line), in)) {
		char module[80] = "";

		if (sscanf(line, "%llx %c %255s [%79[^]]", &address, &type, name, module) < 3 ||
		    !strchr("tTwW", type) || strcmp(module, only))
			continue;
		if (getenv("cost_symbols"))
			say("symbol %llx %s", address, name);
		for (i = 0; i < NR_WATCHED && !only[0]; i++)
			if (!strcmp(name, watched[i].name))
				addresses[i] = address;
	}
	fclose(in);
	if (!addresses[0])
		die("/proc/kallsyms tells no addresses");
}

void watch_forget(void)
{
	size_t i;

	mark_value(MARK_MODRM, MARK_WATCH + MARK_FORGET);
	for (i = 0; i < NR_WATCHED; i++)
		if (addresses[i])
			watch(addresses[i], 1, watched[i].bit);
}

void watch_module(const char *name)
{
	FILE *in = fopen("/proc/modules", "re");
	char line[512], module[64];
	unsigned long long start;
	unsigned long size;

	while (in && fgets(line, sizeof(line), in))
		if (sscanf(line, "%63s %lu %*s %*s %*s %llx", module, &size, &start) == 3 &&
		    !strcmp(module, name)) {
			/* The kernel's trampolines for our probes also lie here. */
			watch(MODULES_START, MODULES_SIZE, MARK_BIT_SAMPLE);
			say("module %s %llx %lu", name, start, size);
			fclose(in);
			if (getenv("cost_symbols"))
				symbols_read(name);
			return;
		}
	die("%s is not in /proc/modules", name);
}

/* ---- modules ------------------------------------------------------------- */

void module_load(const char *name, const char *params)
{
	char path[128];
	int fd;

	snprintf(path, sizeof(path), "/%s.ko", name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || syscall(SYS_finit_module, fd, params, 0))
		die("%s: %s", path, strerror(errno));
	close(fd);
}

void module_unload(const char *name)
{
	if (syscall(SYS_delete_module, name, O_NONBLOCK))
		die("rmmod %s: %s", name, strerror(errno));
}

/* ---- all of it ----------------------------------------------------------- */

/* Return: true if @name is in a comma-separated list; "all" contains every name. */
static bool named(const char *list, const char *name)
{
	size_t size = strlen(name);

	if (!list || !strcmp(list, "all"))
		return true;
	for (; *list; list += strcspn(list, ","), list += *list == ',')
		if (strcspn(list, ",") == size && !strncmp(list, name, size))
			return true;
	return false;
}

/*
 * Runs the work in a new process that looks the same each time, because the cost of fork and
 * exec depends on what is mapped.
 */
static int worker(const char *name, const char *window, unsigned int nr)
{
	const struct work *work = works;

	while (work->name && strcmp(work->name, name))
		work++;
	if (!work->name)
		return 1;
	work->run(nr / 10 + 1); /* warms up the kernel's caches and lazily created data */
	mark_value(MARK_MODRM, MARK_WINDOW + (uint32_t)atoi(window));
	work->run(nr);
	mark_value(MARK_MODRM, MARK_WINDOW);
	return 0;
}

static void measure(const struct state *state, const struct work *work)
{
	static unsigned int window;
	const char *share = getenv("cost_share");
	unsigned int nr = (work->nr - 1) / (share ? (unsigned int)atoi(share) : 1) + 1;
	uint64_t samples = state->samples ? state->samples() : 0;
	char number[16], times[16];
	int status;
	pid_t pid;

	snprintf(number, sizeof(number), "%u", ++window);
	snprintf(times, sizeof(times), "%u", nr);
	pid = fork();
	if (!pid) {
		execl("/init", "/init", work->name, number, times, NULL);
		_exit(1);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid || status)
		die("%s: the worker failed", work->name);
	samples = state->samples ? state->samples() - samples : 0;
	say("window %u %s %s %u %llu", window, state->name, work->name, nr,
	    (unsigned long long)samples);
}

/* Sends the first line of @path. */
static void say_fact(const char *path)
{
	char line[256] = "";
	FILE *in = fopen(path, "re");

	if (in && fgets(line, sizeof(line), in))
		line[strcspn(line, "\n")] = 0;
	if (in)
		fclose(in);
	say("fact %s %s", path, line);
}

int main(int argc, char **argv)
{
	const char *only_states = getenv("cost_states"), *only_works = getenv("cost_works");
	const struct state *state;
	const struct work *work;

	code = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		    0);
	if (code == MAP_FAILED)
		die("mmap: %s", strerror(errno));
	if (argc == 4)
		return worker(argv[1], argv[2], (unsigned int)atoi(argv[3]));
	if (mount("none", "/proc", "proc", 0, NULL) || mount("none", "/sys", "sysfs", 0, NULL) ||
	    mount("none", "/dev", "devtmpfs", 0, NULL))
		die("mount: %s", strerror(errno));
	say_fact("/proc/version");
	say_fact("/sys/devices/system/clocksource/clocksource0/current_clocksource");
	say_fact("/sys/devices/system/clockevents/clockevent0/current_device");
	say_fact("/sys/devices/system/cpu/vulnerabilities/spectre_v2");
	say_fact("/sys/devices/system/cpu/vulnerabilities/retbleed");
	say_fact("/sys/devices/system/cpu/vulnerabilities/meltdown");
	symbols_read("");
	mark_value(MARK_MODRM, MARK_ARM + 1);
	sleep(1); /* until everything is translated again and the boot's leftover work is done */
	watch_forget();
	for (state = states; state->name; state++) {
		if (!named(only_states, state->name))
			continue;
		if (state->begin)
			state->begin();
		for (work = works; work->name; work++)
			if (named(state->works, work->name) && named(only_works, work->name))
				measure(state, work);
		if (state->end)
			state->end();
	}
	say("done");
	power_off();
}
