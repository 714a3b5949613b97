// SPDX-License-Identifier: Apache-2.0
// throws: threads that throw exceptions through many frames, are cancelled, or take backtraces in a signal handler,
// and check each time that all went as it should. Prints "WRONG what" and ends with status 1, or on SIGTERM "done N".
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <csignal>
#include <execinfo.h>
#include <pthread.h>
#include <stdexcept>
#include <string>
#include <sys/time.h>
#include <unistd.h>

static std::atomic<bool> end;
static std::atomic<unsigned long> rounds, cleanups, frames;

[[noreturn]] static void wrong(const char *what)
{
	printf("WRONG %s\n", what);
	fflush(stdout);
	_exit(1);
}

struct guard {
	int &count;
	explicit guard(int &c) : count(c) {}
	~guard() { count++; }
};

__attribute__((noinline)) static int fall(int n, int &count)
{
	guard g(count);

	if (n == 0)
		throw std::runtime_error("bottom");
	return fall(n - 1, count) + n;
}

__attribute__((noinline)) static std::string climb(int n)
{
	int count = 0;

	try {
		fall(n, count);
	} catch (const std::exception &e) {
		if (count != n + 1)
			wrong("destructors");
		return e.what();
	}
	return "nothing";
}

static void on_timer(int)
{
	void *stack[64];
	int n = backtrace(stack, 64);

	// At least the handler, its frame, and the thread's start.
	if (n < 4)
		wrong("backtrace");
	frames += (unsigned long)n;
}

__attribute__((noinline)) static void sleep_deep(int n)
{
	struct at_end {
		~at_end() { cleanups++; }
	} last;

	if (n == 0)
		for (;;)
			pause();
	sleep_deep(n - 1);
	asm volatile("");
}

static void *run_sleeper(void *)
{
	sleep_deep(5);
	return nullptr;
}

static void *run(void *)
{
	while (!end) {
		for (int i = 1; i < 20; i++)
			if (climb(i) != "bottom")
				wrong("what()");
		rounds++;
	}
	return nullptr;
}

// Only this thread takes backtraces: in the middle of a throw, nobody can.
__attribute__((noinline)) static unsigned int spin(int n, unsigned int x)
{
	for (int i = 0; i < 50; i++)
		x = x * 2654435761u + (unsigned int)i;
	return n ? spin(n - 1, x) ^ x : x;
}

static void *run_spinner(void *)
{
	unsigned int want = spin(12, 1);
	sigset_t timer;

	sigemptyset(&timer);
	sigaddset(&timer, SIGPROF);
	pthread_sigmask(SIG_UNBLOCK, &timer, nullptr);
	while (!end)
		if (spin(12, 1) != want)
			wrong("spin");
	return nullptr;
}

static void on_end(int)
{
	end = true;
}

int main()
{
	const struct itimerval every = {{0, 3000}, {0, 3000}};
	pthread_t threads[3], sleeper, spinner;
	sigset_t timer;
	unsigned long before;
	void *result, *warm[4];

	backtrace(warm, 4);
	signal(SIGPROF, on_timer);
	signal(SIGTERM, on_end);
	sigemptyset(&timer);
	sigaddset(&timer, SIGPROF);
	pthread_sigmask(SIG_BLOCK, &timer, nullptr);
	pthread_create(&spinner, nullptr, run_spinner, nullptr);
	for (auto &t : threads)
		pthread_create(&t, nullptr, run, nullptr);
	setitimer(ITIMER_PROF, &every, nullptr);
	puts("ready");
	fflush(stdout);
	while (!end) {
		before = cleanups;
		pthread_create(&sleeper, nullptr, run_sleeper, nullptr);
		usleep(3000);
		pthread_cancel(sleeper);
		pthread_join(sleeper, &result);
		if (result != PTHREAD_CANCELED || cleanups - before != 6)
			wrong("cleanups");
	}
	for (auto &t : threads)
		pthread_join(t, nullptr);
	pthread_join(spinner, nullptr);
	printf("done %lu, %lu cleanups, %lu frames\n", rounds.load(), cleanups.load(), frames.load());
	return 0;
}
