// SPDX-License-Identifier: Apache-2.0
/*
 * test_flame - the tree of samples: merging loses none, and percentages add up at every level.
 */

#include "daemon/draw/flame.h"
#include "daemon/draw/flame_draw.h"
#include "tests/unit/suite.h"

static struct md_flame root;

static struct md_flame *add(struct md_flame *node, const char *name, uint64_t samples)
{
	struct md_flame *bigger =
		reallocarray(node->children, node->nr + 1, sizeof(*node->children));

	ck_assert_ptr_nonnull(bigger);
	node->children = bigger;
	node->children[node->nr] = (struct md_flame){.name = strdup(name), .samples = samples};
	return &node->children[node->nr++];
}

/* Makes @shape children at each of three levels, with uneven samples that add up. */
static void grow_tree(unsigned int shape)
{
	uint32_t seed = shape;

	root = (struct md_flame){.name = strdup("all")};
	for (unsigned int m = 0; m < shape; m++) {
		struct md_flame *module = add(&root, "m", 0);

		for (unsigned int f = 0; f < shape; f++) {
			struct md_flame *function = add(module, "f", 0);

			for (unsigned int b = 0; b < shape; b++) {
				seed = seed * 1103515245 + 12345;
				add(function, "b", 1 + (seed >> 16) % (1 + f * f * 10));
				function->samples += function->children[b].samples;
			}
			module->samples += function->samples;
		}
		root.samples += module->samples;
	}
	md_flame_sort(&root);
}

static void check_sums(const struct md_flame *node, bool rounded)
{
	uint64_t samples = 0;
	unsigned int tenths = 0;

	for (size_t i = 0; i < node->nr; i++) {
		samples += node->children[i].samples;
		tenths += node->children[i].tenths;
		check_sums(&node->children[i], rounded);
	}
	ck_assert(!node->nr || samples == node->samples);
	ck_assert(!node->nr || !rounded || tenths == node->tenths);
}

static uint64_t count_leaves(const struct md_flame *node)
{
	uint64_t nr = 0;

	for (size_t i = 0; i < node->nr; i++)
		nr += count_leaves(&node->children[i]);
	return node->nr ? nr : 1;
}

static void tidy(void)
{
	md_flame_fini(&root);
}

FIXTURE(NULL, tidy);

TEST(flame_merges_without_losing_a_sample)
{
	for (unsigned int shape = 1; shape < 12; shape++) {
		grow_tree(shape);
		check_sums(&root, false);
		md_flame_merge(&root, 30, 0);
		check_sums(&root, false);
		ck_assert_uint_le(count_leaves(&root), (uint64_t)shape * shape * shape);
		md_flame_fini(&root);
	}
}

TEST(flame_merges_only_the_small_and_says_how_many)
{
	root = (struct md_flame){.name = strdup("all"), .samples = 100};
	add(&root, "a", 90);
	add(&root, "b", 5);
	add(&root, "c", 3);
	add(&root, "d", 2);
	md_flame_merge(&root, 5, 0);
	ck_assert_uint_eq(root.nr, 3);
	ck_assert_uint_eq(root.children[1].samples, 5);
	ck_assert_uint_eq(root.children[1].nr_merged, 0);
	ck_assert_uint_eq(root.children[2].samples, 5);
	ck_assert_uint_eq(root.children[2].nr_merged, 2);
	/* A single small node keeps its name. */
	md_flame_fini(&root);
	root = (struct md_flame){.name = strdup("all"), .samples = 91};
	add(&root, "a", 90);
	add(&root, "b", 1);
	md_flame_merge(&root, 5, 0);
	ck_assert_uint_eq(root.nr, 2);
	ck_assert_str_eq(root.children[1].name, "b");
}

TEST(flame_drops_what_is_below_a_narrow_box)
{
	grow_tree(3);
	md_flame_merge(&root, 0, (double)root.samples + 1);
	ck_assert_uint_eq(root.nr, 0);
}

TEST(flame_percentages_add_up)
{
	for (unsigned int shape = 1; shape < 12; shape++) {
		grow_tree(shape);
		root.tenths = 1000;
		ck_assert_int_eq(md_flame_round(&root), 0);
		check_sums(&root, true);
		/* The rounding error of each share is less than a tenth. */
		for (size_t i = 0; i < root.nr; i++) {
			double exact =
				1000.0 * (double)root.children[i].samples / (double)root.samples;

			ck_assert((double)root.children[i].tenths > exact - 1 &&
				  (double)root.children[i].tenths < exact + 1);
		}
		md_flame_fini(&root);
	}
}

TEST(flame_rounds_huge_counts)
{
	root = (struct md_flame){.name = strdup("all"), .samples = UINT64_MAX - 1, .tenths = 1000};
	add(&root, "a", UINT64_MAX / 2);
	add(&root, "b", UINT64_MAX / 2);
	ck_assert_int_eq(md_flame_round(&root), 0);
	ck_assert_uint_eq(root.children[0].tenths, 500);
	ck_assert_uint_eq(root.children[1].tenths, 500);
}

struct drawn {
	double x, w, d;
};

/* The rule of the picture's script: is box @g still shown after a click on @f? */
static bool stays(const struct drawn *f, const struct drawn *g)
{
	double e = f->w / 1e9;
	bool up = g->d < f->d && g->x <= f->x + e && g->x + g->w >= f->x + f->w - e;

	return up || !(g->x + g->w <= f->x + e || g->x >= f->x + f->w - e);
}

/* Lists boxes in the order of drawing; each has the index of its parent. */
static size_t list_above(const struct md_flame *node, int above, int *list, size_t nr)
{
	int self = (int)nr;

	list[nr++] = above;
	for (size_t i = 0; i < node->nr; i++)
		nr = list_above(&node->children[i], self, list, nr);
	return nr;
}

static bool is_above(const int *list, size_t a, size_t b)
{
	for (int i = (int)b; i >= 0; i = list[i])
		if (i == (int)a)
			return true;
	return false;
}

TEST(flame_shows_only_what_is_above_and_below_the_clicked_box)
{
	struct md_flame_picture picture = {.root = &root, .full = &root, .what = ""};
	static struct drawn boxes[1000];
	static int list[1000];
	size_t nr, nr_boxes = 0, size = 0;
	AUTO_FREE char *svg = NULL;
	FILE *out;

	grow_tree(9);
	root.tenths = 1000;
	ck_assert_int_eq(md_flame_round(&root), 0);
	nr = list_above(&root, -1, list, 0);
	picture.nr_samples = root.samples;
	out = open_memstream(&svg, &size);
	ck_assert_ptr_nonnull(out);
	ck_assert_int_eq(md_flame_draw_svg(&picture, out), 0);
	ck_assert_int_eq(fclose(out), 0);
	for (const char *p = svg; (p = strstr(p, "<g class=\"n\" ")); p++) {
		struct drawn *box = &boxes[nr_boxes++];

		ck_assert_int_eq(sscanf(p,
					"<g class=\"n\" data-x=\"%lf\" data-w=\"%lf\" "
					"data-d=\"%lf\">",
					&box->x, &box->w, &box->d),
				 3);
	}
	ck_assert_uint_eq(nr_boxes, nr);
	for (size_t f = 0; f < nr; f++)
		for (size_t g = 0; g < nr; g++)
			ck_assert_msg(stays(&boxes[f], &boxes[g]) ==
					      (is_above(list, f, g) || is_above(list, g, f)),
				      "box %zu, after a click on %zu", g, f);
}

TEST(flame_tells_modules_of_one_name_apart)
{
	root = (struct md_flame){.name = strdup("all")};
	strcpy(add(&root, "prog", 3)->id, "0123abcd");
	strcpy(add(&root, "libc.so.6", 2)->id, "11112222");
	strcpy(add(&root, "prog", 1)->id, "fedc9876");
	ck_assert_int_eq(md_flame_add_build_ids(&root), 0);
	ck_assert_str_eq(root.children[0].name, "prog 0123abcd");
	ck_assert_str_eq(root.children[1].name, "libc.so.6");
	ck_assert_str_eq(root.children[2].name, "prog fedc9876");
}
