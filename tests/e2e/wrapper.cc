/* SPDX-License-Identifier: Apache-2.0 */
/* wrapper.cc - a C++ program with ct.hpp, compiled with and without exceptions. */
#include <ct.hpp>

#include <array>
#include <cstdio>
#include <vector>

#if defined(__cpp_exceptions)
#define MUST(call) (call)
#else
#define MUST(call)                                         \
    do {                                                   \
        if ((call) != CT_OK) {                             \
            std::fprintf(stderr, "%s\n", ct_last_error()); \
            std::exit(1);                                  \
        }                                                  \
    } while (0)
#endif

static int wrong;

static void expect(bool holds, const char *what)
{
    if (!holds) {
        std::fprintf(stderr, "rank %d: not so: %s\n", ct_rank(CT_WORLD), what);
        wrong++;
    }
}
#define EXPECT(condition) expect((condition), #condition)

static void collectives(const ct::group &g)
{
    const int rank = g.rank(), size = g.size();
    std::vector<float> x(1000, 1.0f);
    std::array<long, 3> a{ rank, rank, rank };
    std::complex<double> z{ 1, 2 };
    std::vector<unsigned char> all(static_cast<std::size_t>(size));
    const unsigned char mine = static_cast<unsigned char>(rank);
    bool any = rank == 1;
    ct::work work;

    MUST(g.all_reduce(x));
    EXPECT(x[0] == size && x[999] == size);
    MUST(g.all_reduce(a, CT_MAX, &work));
    MUST(work.wait());
    MUST(work.wait());
    EXPECT(a[2] == size - 1);
    MUST(g.all_reduce(&z, &z, 1));
    EXPECT(z == std::complex<double>(size, 2 * size));
    MUST(g.all_reduce(&any, &any, 1, CT_MAX));
    EXPECT(any == (size > 1));
    MUST(g.all_gather(&mine, all.data(), 1));
    for (int i = 0; i < size; i++)
        EXPECT(all[static_cast<std::size_t>(i)] == i);
    MUST(g.broadcast(a, 0));
    MUST(g.barrier());
}

static void messages(const ct::group &g)
{
    const int right = (g.rank() + 1) % g.size(), left = (g.rank() + g.size() - 1) % g.size();
    const int out = g.rank();
    int in = -1, from = -1;
    bool over = false;
    ct::work work;

    MUST(g.isend(&out, 1, right, 7, work));
    MUST(g.recv(&in, 1, CT_ANY_SOURCE, 7, &from));
    MUST(work.test(over));
    EXPECT(in == left && from == left);
}

static void groups(const ct::group &world)
{
    ct::group half, moved;

    MUST(world.split(world.rank() % 2, 0, half));
    EXPECT(half.size() == world.size() / 2);
    collectives(half);
    moved = std::move(half);
    EXPECT(moved.rank() == world.rank() / 2);
    MUST(moved.close());
}

static void keys(int size)
{
    ct::store store;
    std::string value;
    std::int64_t sum = 0;

    MUST(store.set("name", std::string("a\0b", 3)));
    MUST(store.get("name", value));
    EXPECT(value.size() == 3);
    MUST(store.add("count", 1, sum));
    EXPECT(sum >= 1 && sum <= size);
}

static void errors(const ct::group &world)
{
    int x = 0;

#if defined(__cpp_exceptions)
    try {
        world.broadcast(&x, 1, world.size());
        EXPECT(!"a wrong root throws");
    } catch (const ct::error &e) {
        EXPECT(e.status() == CT_ERR_INVALID);
        EXPECT(std::string(e.what()).find("root") != std::string::npos);
    }
    try {
        ct::group().barrier();
        EXPECT(!"an empty group is the world");
    } catch (const std::logic_error &e) {
        EXPECT(std::string(e.what()).find("never made") != std::string::npos);
    }
#else
    EXPECT(world.broadcast(&x, 1, world.size()) == CT_ERR_INVALID);
#endif
}

int main()
{
#if defined(__cpp_exceptions)
    ct::session session;
#else
    ct::session session;

    MUST(session.open());
#endif
    const ct::group world = ct::group::world();

    static_assert(ct::dtype_v<const long long> == CT_I64 && ct::dtype_v<bool> == CT_BOOL);
    collectives(world);
    messages(world);
    groups(world);
    keys(world.size());
    errors(world);
    MUST(world.barrier());
    if (world.rank() == 0 && wrong == 0)
        std::puts("right");
    MUST(session.close());
    return wrong != 0;
}
