// SPDX-License-Identifier: Apache-2.0
/*
 * selfcheck - lists of marks by which programs that check themselves are known. Other programs
 * have none of these marks, so nothing is refused on suspicion.
 */
#include "editor/evidence/selfcheck.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
	/* Tools that sign or pad round up a file's end. No archive is so small and all zeros. */
	TAIL_ZEROS = 4096,
	HMAC_SHA256_SIZE = 32,
};

/* ---- bytes that no header covers ------------------------------------------------------------ */

struct range {
	uint64_t start, end;
};

static int compare_ranges(const void *a, const void *b)
{
	const struct range *x = a, *y = b;

	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	return x->end < y->end ? -1 : x->end > y->end;
}

static void cover(struct range *ranges, uint32_t *nr, uint64_t off, uint64_t size)
{
	if (size)
		ranges[(*nr)++] = (struct range){off, off + size};
}

static bool any_byte(const uint8_t *bytes, uint64_t size)
{
	while (size && !*bytes) {
		bytes++;
		size--;
	}
	return size != 0;
}

/*
 * Bytes up to the end of the last segment keep their offsets in an output. Behind it sections
 * move, and bytes of no section would be lost.
 */
static int check_covered(const struct mp_elf *elf, struct mp_err *err)
{
	struct range *ranges = malloc((elf->nr_phdrs + elf->nr_sections + 3) * sizeof(*ranges));
	uint32_t nr = 0;
	uint64_t loaded = 0, end = 0;
	int rc = 0;

	if (!ranges)
		return mp_err_set(err, ENOMEM, "out of memory");
	for (uint32_t i = 0; i < elf->nr_phdrs; i++) {
		const Elf64_Phdr *p = &elf->phdrs[i];

		cover(ranges, &nr, p->p_offset, p->p_filesz);
		if (p->p_type == PT_LOAD && p->p_offset + p->p_filesz > loaded)
			loaded = p->p_offset + p->p_filesz;
	}
	for (uint32_t i = 1; i < elf->nr_sections; i++) {
		const struct mp_section *s = &elf->sections[i];

		if (s->type != SHT_NOBITS && s->type != SHT_NULL)
			cover(ranges, &nr, s->off, s->size);
	}
	cover(ranges, &nr, 0, sizeof(elf->ehdr));
	cover(ranges, &nr, elf->ehdr.e_phoff, elf->nr_phdrs * sizeof(Elf64_Phdr));
	cover(ranges, &nr, elf->ehdr.e_shoff, elf->nr_sections * sizeof(Elf64_Shdr));
	qsort(ranges, nr, sizeof(*ranges), compare_ranges);
	for (uint32_t i = 0; i <= nr && !rc; i++) {
		uint64_t start = i < nr ? ranges[i].start : elf->size;
		uint64_t from = end > loaded ? end : loaded;

		if (start > from && any_byte(elf->data + from, start - from))
			rc = mp_err_set(
				err, EPERM,
				"carries %" PRIu64 " bytes %s, at offset %" PRIu64
				": an archive or signature that the program may look for",
				start - from,
				i < nr ? "that no section holds" : "behind its last section", from);
		else if (i == nr && start > from && start - from >= TAIL_ZEROS)
			rc = mp_err_set(err, EPERM,
					"carries %" PRIu64 " bytes behind its last section",
					start - from);
		if (i < nr && ranges[i].end > end)
			end = ranges[i].end;
	}
	free(ranges);
	return rc;
}

/* ---- marks ---------------------------------------------------------------------------------- */

static bool ends_with(const struct mp_elf *elf, const char *text)
{
	size_t size = strlen(text);

	return elf->size >= size && !memcmp(elf->data + elf->size - size, text, size);
}

static int check_marks(const struct mp_elf *elf, struct mp_err *err)
{
	uint64_t phdrs_end = elf->ehdr.e_phoff + elf->nr_phdrs * sizeof(Elf64_Phdr);

	if (ends_with(elf, "~Module signature appended~\n"))
		return mp_err_set(err, EPERM, "carries a signature at its end");
	if (!memcmp(elf->ehdr.e_ident + EI_ABIVERSION, "AI\1", 3) ||
	    !memcmp(elf->ehdr.e_ident + EI_ABIVERSION, "AI\2", 3))
		return mp_err_set(err, EPERM, "is an AppImage");
	/* UPX writes a checksum and this mark right behind the program headers. */
	if (phdrs_end + 8 <= elf->size && !memcmp(elf->data + phdrs_end + 4, "UPX!", 4))
		return mp_err_set(err, EPERM, "is packed with UPX");
	return 0;
}

/* ---- sections and symbols ------------------------------------------------------------------- */

static const struct {
	const char *name;
	bool prefix;
	uint64_t size; /* 0: any */
	const char *what;
} checksum_sections[] = {
	{".note.fdo.integrity", false, 0, "holds a checksum of itself (.note.fdo.integrity)"},
	/* OpenSSL's and libgcrypt's checksums are put here after linking. */
	{".rodata1", false, HMAC_SHA256_SIZE, "holds a checksum of itself (.rodata1)"},
	{".fips", true, 0, "holds a FIPS module with a checksum of itself"},
	{"pydata", false, 0, "holds an archive of PyInstaller (section pydata)"},
	{".sha256_sig", false, 0, "is an AppImage (section .sha256_sig)"},
};

/* Symbols of integrity tests inside a program: BoringSSL, AWS-LC, OpenSSL's canister. */
static const char *const fips_symbols[] = {
	"BORINGSSL_bcm_text_start", "BORINGSSL_bcm_text_hash", "FIPS_text_start",
	"FIPS_incore_fingerprint",  "FIPS_signature",
};

/*
 * Gforth makes code at run time from its primitives' code between labels of its engine, whose
 * order must stay.
 */
static const char *const copying_symbols[] = {"compile_prim1"};

static int check_copying(const struct mp_symbol *s, struct mp_err *err)
{
	for (size_t k = 0; k < sizeof(copying_symbols) / sizeof(copying_symbols[0]); k++) {
		if (!strcmp(s->name, copying_symbols[k]))
			return mp_err_set(err, EPERM, "copies parts of its own code (%s)", s->name);
	}
	return 0;
}

static int check_names(const struct mp_elf *elf, struct mp_err *err)
{
	for (uint32_t i = 1; i < elf->nr_sections; i++) {
		for (size_t k = 0; k < sizeof(checksum_sections) / sizeof(checksum_sections[0]);
		     k++) {
			const char *name = elf->sections[i].name;
			bool same = checksum_sections[k].prefix
					    ? !strncmp(name, checksum_sections[k].name,
						       strlen(checksum_sections[k].name))
					    : !strcmp(name, checksum_sections[k].name);

			if (same && (!checksum_sections[k].size ||
				     checksum_sections[k].size == elf->sections[i].size))
				return mp_err_set(err, EPERM, "%s", checksum_sections[k].what);
		}
	}
	for (uint32_t i = 0; i < elf->nr_symbols; i++) {
		const struct mp_symbol *s = &elf->symbols[i];

		if (s->shndx == SHN_UNDEF)
			continue;
		if ((*s->name == 'c' || *s->name == 'g') && check_copying(s, err))
			return -EPERM;
		if (s->name[0] != 'B' && s->name[0] != 'F')
			continue;
		for (size_t k = 0; k < sizeof(fips_symbols) / sizeof(fips_symbols[0]); k++) {
			if (!strcmp(s->name, fips_symbols[k]))
				return mp_err_set(err, EPERM,
						  "holds a FIPS module with a checksum of itself "
						  "(%s)",
						  s->name);
		}
	}
	return 0;
}

int me_selfcheck_file(const struct mp_elf *elf, struct mp_err *err)
{
	int rc = check_marks(elf, err);

	if (!rc)
		rc = check_names(elf, err);
	return rc ? rc : check_covered(elf, err);
}

/* ---- beside the file ------------------------------------------------------------------------ */

static int check_companion(const char *dir, const char *prefix, const char *name,
			   const char *suffix, struct mp_err *err)
{
	char path[PATH_MAX];
	struct stat st;
	int n = snprintf(path, sizeof(path), "%s/%s%s%s", dir, prefix, name, suffix);

	if (n < 0 || (size_t)n >= sizeof(path) || stat(path, &st) || !S_ISREG(st.st_mode))
		return 0;
	return mp_err_set(err, EPERM, "its checksum is in %.150s and would no longer match", path);
}

/* How names that fipscheck, libgcrypt, gnutls and hmaccalc use begin. */
static const char *const companions[] = {".", "", "fipscheck/", "hmaccalc/"};
static const char *const checksum_dirs[] = {"/usr/lib", "/usr/lib64", "/usr/libexec"};

static int check_name(const char *dir, const char *name, struct mp_err *err)
{
	size_t len = strlen(name);
	int rc = 0;

	for (size_t i = 0; !rc && i < sizeof(companions) / sizeof(companions[0]); i++)
		rc = check_companion(dir, companions[i], name, ".hmac", err);
	for (size_t i = 0; !rc && i < sizeof(checksum_dirs) / sizeof(checksum_dirs[0]); i++) {
		rc = check_companion(checksum_dirs[i], companions[2], name, ".hmac", err);
		if (!rc)
			rc = check_companion(checksum_dirs[i], companions[3], name, ".hmac", err);
	}
	/* NSS: libsoftokn3.so has libsoftokn3.chk. */
	if (!rc && len > 3 && !strcmp(name + len - 3, ".so")) {
		char stem[NAME_MAX + 1];

		snprintf(stem, sizeof(stem), "%.*s", (int)(len - 3), name);
		rc = check_companion(dir, "", stem, ".chk", err);
	}
	return rc;
}

int me_selfcheck_companions(const char *path, struct mp_err *err)
{
	char dir[PATH_MAX], *name, *so;
	int rc = 0;

	if ((size_t)snprintf(dir, sizeof(dir), "%s%s", strchr(path, '/') ? "" : "./", path) >=
	    sizeof(dir))
		return 0;
	name = strrchr(dir, '/');
	*name++ = '\0';
	so = strstr(name, ".so.");
	/* The checksum of libx.so.1.2 may be named after libx.so.1, by which it is loaded. */
	while (!rc) {
		char *dot = strrchr(name, '.');

		rc = check_name(dir, name, err);
		if (!so || !dot || dot <= so)
			break;
		*dot = '\0';
	}
	return rc;
}

int me_selfcheck_signed(int fd, const struct me_attributes *attributes, struct mp_err *err)
{
	struct statx stx;

	if (!statx(fd, "", AT_EMPTY_PATH, STATX_BASIC_STATS, &stx) &&
	    (stx.stx_attributes & STATX_ATTR_VERITY))
		return mp_err_set(err, EPERM, "is sealed with fs-verity");
	for (uint32_t i = 0; i < attributes->nr_xattrs; i++) {
		const char *name = attributes->xattrs[i].name;

		if (!strcmp(name, "security.ima") || !strcmp(name, "security.evm"))
			return mp_err_set(err, EPERM, "is signed or measured (%s)", name);
	}
	return 0;
}
