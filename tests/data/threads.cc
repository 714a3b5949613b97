// SPDX-License-Identifier: Apache-2.0
// Forced unwinding: pthread_exit and cancellation run the cleanups of moved frames; a thread that
// is asked to stop in the middle of moved code; thread-local storage of each kind.
#include <atomic>
#include <cstdio>
#include <pthread.h>
#include <thread>
#include <unistd.h>

static std::atomic<int> cleaned;
static thread_local int tls_plain = 5;
static __thread int tls_c = 6;
thread_local struct Local {
	int v = 7;
	~Local() { cleaned += 100; }
} tls_object;

struct Cleanup {
	int by;
	explicit Cleanup(int n) : by(n) {}
	~Cleanup() { cleaned += by; }
};

__attribute__((noinline)) static void leave(int n)
{
	Cleanup c(1);

	if (n == 0)
		pthread_exit(nullptr);
	leave(n - 1);
	tls_plain++;
}

static void *exits(void *arg)
{
	Cleanup c(10);

	tls_object.v++;
	leave(static_cast<int>(reinterpret_cast<long>(arg)));
	return nullptr;
}

static void c_cleanup(void *arg) { cleaned += *static_cast<int *>(arg); }

static pthread_barrier_t ready;

static void *waits(void *)
{
	static int by = 1000;
	Cleanup c(2000);

	pthread_cleanup_push(c_cleanup, &by);
	pthread_barrier_wait(&ready);
	for (;;)
		pause();
	pthread_cleanup_pop(0);
	return nullptr;
}

static void *counts(void *arg)
{
	long n = 0, *stop = static_cast<long *>(arg);

	pthread_setcanceltype(PTHREAD_CANCEL_DEFERRED, nullptr);
	pthread_barrier_wait(&ready);
	while (!__atomic_load_n(stop, __ATOMIC_RELAXED)) {
		n++;
		pthread_testcancel();
	}
	return reinterpret_cast<void *>(n > 0 ? 1L : 0L);
}

int main()
{
	pthread_t t;
	void *result;
	long stop = 0;

	pthread_create(&t, nullptr, exits, reinterpret_cast<void *>(4L));
	pthread_join(t, nullptr);
	std::printf("exit %d\n", cleaned.load());
	pthread_barrier_init(&ready, nullptr, 2);
	pthread_create(&t, nullptr, waits, nullptr);
	pthread_barrier_wait(&ready);
	pthread_cancel(t);
	pthread_join(t, &result);
	std::printf("cancel %d %d\n", cleaned.load(), result == PTHREAD_CANCELED);
	pthread_create(&t, nullptr, counts, &stop);
	pthread_barrier_wait(&ready);
	pthread_cancel(t);
	pthread_join(t, &result);
	std::printf("testcancel %d\n", result == PTHREAD_CANCELED);
	std::thread other([] { tls_plain = 50; tls_c += 1; });
	other.join();
	std::printf("tls %d %d %d\n", tls_plain, tls_c, tls_object.v);
	return 0;
}
