// SPDX-License-Identifier: Apache-2.0
/* progress - prints a line that overwrites itself; see progress.h. */
#include "libprof/cli/progress.h"

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/time.h>
#include <unistd.h>

#include "libprof/base/clock.h"
#include "libprof/base/text.h"

enum {
	FIRST_MS = 1000, /* shorter work shows no line */
	EVERY_MS = 100,
	LINE_MAX_BYTES = 256,
	SECONDS_BYTES = 24
};

static const char erase[] = "\r\033[K";

static struct {
	const char *program;
	bool on, ticks, shown;
	int columns;
	int64_t start_ms, shown_ms;
	char text[LINE_MAX_BYTES];
} line;

static int64_t now_ms(void)
{
	return mp_clock_ns(CLOCK_MONOTONIC) / 1000000;
}

/* The signal handler calls it, too, so it uses only write(). One write keeps lines apart. */
static void show(int64_t at_ms)
{
	char out[sizeof(erase) + LINE_MAX_BYTES + SECONDS_BYTES];
	size_t nr = sizeof(erase) - 1, size = strlen(line.text);
	int64_t seconds = (at_ms - line.start_ms) / 1000;
	char digits[SECONDS_BYTES];
	int nr_digits = 0;
	ssize_t done;

	memcpy(out, erase, nr);
	memcpy(out + nr, line.text, size);
	nr += size;
	if (line.ticks) {
		memcpy(out + nr, ", ", 2);
		nr += 2;
		do
			digits[nr_digits++] = (char)('0' + seconds % 10);
		while ((seconds /= 10) && nr_digits < SECONDS_BYTES - 4);
		while (nr_digits)
			out[nr++] = digits[--nr_digits];
		memcpy(out + nr, " s", 2);
		nr += 2;
	}
	done = write(STDERR_FILENO, out, nr);
	(void)done; /* losing the terminal is no reason to stop */
	line.shown = true;
	line.shown_ms = at_ms;
}

static void on_alarm(int sig)
{
	int code = errno;

	(void)sig;
	if (line.on && line.text[0])
		show(now_ms());
	errno = code;
}

static void set_timer(int seconds)
{
	struct itimerval every = {.it_interval = {.tv_sec = seconds},
				  .it_value = {.tv_sec = seconds}};

	setitimer(ITIMER_REAL, &every, NULL);
}

bool mp_progress_start(const char *program, bool ticks)
{
	struct sigaction action = {.sa_handler = on_alarm, .sa_flags = SA_RESTART};
	const char *term = getenv("TERM");
	struct winsize size;

	if (line.on || !isatty(STDERR_FILENO) || !term || !*term || !strcmp(term, "dumb"))
		return line.on;
	line.program = program;
	line.columns = !ioctl(STDERR_FILENO, TIOCGWINSZ, &size) && size.ws_col ? size.ws_col : 80;
	line.start_ms = now_ms();
	line.ticks = ticks;
	line.on = true;
	if (ticks) {
		sigaction(SIGALRM, &action, NULL);
		set_timer(FIRST_MS / 1000);
	}
	return true;
}

void mp_progress_say(const char *fmt, ...)
{
	int room =
		line.columns - 1 - (line.ticks ? 10 : 0); /* a line that wraps cannot be erased */
	char plain[LINE_MAX_BYTES], text[LINE_MAX_BYTES];
	sigset_t alarm, before;
	int64_t at_ms;
	va_list ap;
	int nr;

	if (!line.on)
		return;
	nr = snprintf(plain, sizeof(plain), "%s: ", line.program);
	va_start(ap, fmt);
	if (nr > 0 && nr < (int)sizeof(plain))
		vsnprintf(plain + nr, sizeof(plain) - (size_t)nr, fmt, ap);
	va_end(ap);
	mp_text_escape(plain, text, sizeof(text));
	if (room >= 0 && room < (int)sizeof(text))
		text[room] = '\0';
	sigemptyset(&alarm);
	sigaddset(&alarm, SIGALRM);
	sigprocmask(SIG_BLOCK, &alarm, &before);
	memcpy(line.text, text, sizeof(text));
	at_ms = now_ms();
	if (at_ms - line.start_ms >= FIRST_MS && at_ms - line.shown_ms >= EVERY_MS)
		show(at_ms);
	sigprocmask(SIG_SETMASK, &before, NULL);
}

void mp_progress_stop(void)
{
	ssize_t done;

	if (!line.on)
		return;
	if (line.ticks)
		set_timer(0);
	line.on = false;
	if (line.shown) {
		done = write(STDERR_FILENO, erase, sizeof(erase) - 1);
		(void)done;
	}
	line.shown = false;
}
