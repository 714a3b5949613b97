// SPDX-License-Identifier: Apache-2.0
/* maps - tests which parts of the rings can be mapped, how, and what is refused. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/guest/programs/reader.h"

#define TAIL  (PROT_READ | PROT_WRITE)
#define TRIES 5000

static int fd;
static long page;
static uint64_t ring_bytes;

static void *try(uint64_t off, uint64_t len, int prot, int flags)
{
	return mmap(NULL, len, prot, flags, fd, off);
}

/* The mapping must fail with one of two errors, since the kernel's own check may come first. */
static void refused(uint64_t off, uint64_t len, int prot, int flags, int error, int or_error)
{
	void *p = try(off, len, prot, flags);

	EXPECT(p == MAP_FAILED, "mapped %#llx + %#llx, prot %d, flags %d", (unsigned long long)off,
	       (unsigned long long)len, prot, flags);
	if (p != MAP_FAILED)
		munmap(p, len);
	else
		EXPECT(errno == error || errno == or_error, "%#llx + %#llx, prot %d: %s",
		       (unsigned long long)off, (unsigned long long)len, prot, strerror(errno));
}

static sigjmp_buf out;

static void on_fault(int sig)
{
	siglongjmp(out, sig);
}

static void check_refused(void)
{
	uint64_t ring = MORPH_DEV_RING(0);

	/* The tail can only be mapped alone and shared. */
	refused(ring, 2 * page, PROT_READ, MAP_SHARED, EINVAL, 0);
	refused(ring, 2 * page + ring_bytes, PROT_READ, MAP_SHARED, EINVAL, 0);
	refused(ring, page, TAIL, MAP_PRIVATE, EINVAL, 0);
	/* The kernel's pages: read-only, and not one byte more. */
	refused(ring + page, page, TAIL, MAP_SHARED, EPERM, EACCES);
	refused(ring + page, page + ring_bytes, TAIL, MAP_SHARED, EPERM, EACCES);
	refused(ring + page, page + ring_bytes, PROT_WRITE, MAP_SHARED, EPERM, EACCES);
	refused(ring + 2 * page, ring_bytes, TAIL, MAP_SHARED, EPERM, EACCES);
	refused(ring + page, 2 * page + ring_bytes, PROT_READ, MAP_SHARED, EINVAL, 0);
	refused(ring + 2 * page, ring_bytes + page, PROT_READ, MAP_SHARED, EINVAL, 0);
	refused(ring + 2 * page + ring_bytes, page, PROT_READ, MAP_SHARED, EINVAL, ENXIO);
	refused(ring + 0xfffff000, page, PROT_READ, MAP_SHARED, EINVAL, ENXIO);
	refused(ring + 0xfffff000, 2 * page, PROT_READ, MAP_SHARED, EINVAL, ENXIO);
	/* CPUs that do not exist. */
	refused(MORPH_DEV_RING(8191), page, TAIL, MAP_SHARED, ENXIO, 0);
	refused(MORPH_DEV_RING(0x7fffffff), page, TAIL, MAP_SHARED, ENXIO, EOVERFLOW);
	refused(0x7ffffffffffff000, page, TAIL, MAP_SHARED, ENXIO, EOVERFLOW);
	refused(0xfffffffffffff000, page, TAIL, MAP_SHARED, ENXIO, EOVERFLOW);
	refused(0xfffffffffffff000, 2 * page, TAIL, MAP_SHARED, ENXIO, EOVERFLOW);
	refused(ring + 1, page, TAIL, MAP_SHARED, EINVAL, 0);
}

static void check_records(void)
{
	uint64_t len = page + ring_bytes;
	volatile uint64_t *p = try(MORPH_DEV_RING(0) + page, len, PROT_READ, MAP_SHARED);
	void *q;

	EXPECT(p != MAP_FAILED, "records: %s", strerror(errno));
	if (p == MAP_FAILED)
		return;
	EXPECT_ERRNO(mprotect((void *)p, page, TAIL), EACCES);
	EXPECT_ERRNO(mprotect((void *)p, len, PROT_WRITE), EACCES);
	EXPECT_ERRNO(mprotect((char *)p + page, ring_bytes, TAIL), EACCES);
	q = mremap((void *)p, len, len + page, MREMAP_MAYMOVE);
	EXPECT(q == MAP_FAILED, "mremap made the mapping longer");
	q = mremap((void *)p, 0, len, MREMAP_MAYMOVE);
	if (q != MAP_FAILED) {
		EXPECT_ERRNO(mprotect(q, page, TAIL), EACCES);
		munmap(q, len);
	}
	if (!sigsetjmp(out, 1)) {
		*p = 0;
		EXPECT(0, "wrote to the kernel's page");
	}
	/* Root cannot write through /proc/self/mem either. */
	{
		int mem = open("/proc/self/mem", O_RDWR);
		uint64_t rubbish = ~0ULL;

		EXPECT(mem < 0 || pwrite(mem, &rubbish, 8, (off_t)(uintptr_t)p) != 8,
		       "/proc/self/mem wrote to the kernel's page");
		close(mem);
	}
	EXPECT(((struct morph_head *)p)->ring_bytes == ring_bytes, "the kernel's page has changed");
	/* Unmap in pieces, with a hole in the middle. */
	munmap((char *)p + 2 * page, page);
	munmap((void *)p, page);
	munmap((char *)p + page, len - page);
	/* A private copy, which only this process sees, may be allowed or refused. */
	p = try(MORPH_DEV_RING(0) + page, len, PROT_READ, MAP_PRIVATE);
	if (p != MAP_FAILED)
		munmap((void *)p, len);
}

/* Random ranges: whatever can be mapped can be read to its end. */
static void check_random(void)
{
	unsigned int seed = 1;
	int i, nr = 0;

	for (i = 0; i < TRIES; i++) {
		uint64_t max = ring_bytes / page + 6, k;
		uint64_t off = MORPH_DEV_RING(rand_r(&seed) % 5) + (rand_r(&seed) % max) * page;
		uint64_t len = (1 + rand_r(&seed) % max) * page;
		int prot = rand_r(&seed) % 2 ? TAIL : PROT_READ;
		volatile char *p;

		if (rand_r(&seed) % 16 == 0)
			off = ((uint64_t)rand_r(&seed) << 32 | rand_r(&seed)) & -page;
		p = try(off, len, prot, rand_r(&seed) % 4 ? MAP_SHARED : MAP_PRIVATE);
		if (p == MAP_FAILED)
			continue;
		nr++;
		EXPECT(prot == PROT_READ || len == (uint64_t)page,
		       "%#llx + %#llx is mapped to be written", (unsigned long long)off,
		       (unsigned long long)len);
		for (k = 0; k < len; k += page)
			(void)p[k];
		munmap((void *)p, len);
	}
	EXPECT(nr > TRIES / 100, "only %d of %d mappings were possible", nr, TRIES);
}

int main(void)
{
	struct sigaction act = {.sa_handler = on_fault};
	struct reader r;
	void *p;
	int ro;

	sigaction(SIGSEGV, &act, NULL);
	sigaction(SIGBUS, &act, NULL);
	page = sysconf(_SC_PAGESIZE);
	reader_open(&r);
	fd = r.fd;
	ring_bytes = r.hello.ring_bytes;
	/* Before START no ring exists. */
	refused(MORPH_DEV_RING(0), page, TAIL, MAP_SHARED, ENXIO, 0);
	refused(MORPH_DEV_RING(0) + page, page + ring_bytes, PROT_READ, MAP_SHARED, ENXIO, 0);
	reader_start(&r, 4000, -1, 0);
	check_refused();
	check_records();
	check_random();

	/* Rings live as long as a mapping of them; until then the device counts as open. */
	reader_map(&r);
	p = (void *)r.rings[0].head;
	close(fd);
	EXPECT_ERRNO(open(MORPH_DEV_PATH, O_RDWR), EBUSY);
	sleep_ms(50);
	EXPECT(((struct morph_head *)p)->ring_bytes == ring_bytes,
	       "a ring is gone under its mapping");
	r.fd = -1;
	reader_close(&r);
	reader_open(&r);
	reader_start(&r, 0, -1, 0);
	/* A read-only descriptor maps nothing: the rings may go while it is open. */
	ro = open(MORPH_DEV_PATH, O_RDONLY);
	EXPECT(ro >= 0, "cannot look beside the reader: %s", strerror(errno));
	fd = ro;
	refused(MORPH_DEV_RING(0), page, TAIL, MAP_SHARED, EACCES, 0);
	refused(MORPH_DEV_RING(0), page, PROT_READ, MAP_SHARED, EACCES, 0);
	refused(MORPH_DEV_RING(0) + page, page + ring_bytes, PROT_READ, MAP_SHARED, EACCES, 0);
	return finish();
}
