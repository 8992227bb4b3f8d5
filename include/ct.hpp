/* SPDX-License-Identifier: Apache-2.0 */
/* ct.hpp - libct for C++17 and later, in this header alone.  ct.h describes each call.
 *
 *     ct::session session;                        // ct_init_process_group(), ct_destroy_...()
 *     ct::group world = ct::group::world();
 *     std::vector<float> x(1000, 1.0f);
 *     world.all_reduce(x);                        // dtype and count come from the vector
 *     ct::work work;
 *     world.all_reduce(x, CT_MAX, &work);         // starts; x must live until work.wait()
 *     work.wait();
 *
 * With exceptions, a call that fails throws ct::error, and calls return nothing or their value.
 * Without exceptions (-fno-exceptions), a call returns its ct_status; functions that return a value
 * are left out, and those that store it in their last argument stay.  Objects move and do not copy.
 * A destructor ignores errors: call close() or wait() where you want to see them. */
#ifndef CT_HPP
#define CT_HPP

#include <complex>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <string>
#include <type_traits>
#include <utility>

#include "ct.h"
#if defined(__cpp_exceptions)
#include <stdexcept>
#endif

namespace ct
{

/* ---- Errors ------------------------------------------------------------------------ */

#if defined(__cpp_exceptions)
/* what() is ct_last_error(). */
class error : public std::runtime_error
{
  public:
    explicit error(ct_status status)
        : std::runtime_error(*ct_last_error() ? ct_last_error() : ct_strerror(status)),
          status_(status)
    {
    }
    ct_status status() const noexcept
    {
        return status_;
    }

  private:
    ct_status status_;
};

using result = void;
inline void done(ct_status status)
{
    if (status != CT_OK)
        throw error(status);
}
#else
using result = ct_status;
inline ct_status done(ct_status status) noexcept
{
    return status;
}
#endif

/* ---- Dtypes ------------------------------------------------------------------------ */

/* The dtype of a type.  Specialize it for a type of 16 or 8 bits:
 *     template <> struct ct::dtype<half> { static constexpr ct_dtype value = CT_F16; }; */
template <class T, class = void> struct dtype;

template <class T> struct dtype<T, std::enable_if_t<std::is_integral_v<T>>> {
    static constexpr ct_dtype of(ct_dtype is_signed, ct_dtype is_unsigned)
    {
        return std::is_signed_v<T> ? is_signed : is_unsigned;
    }
    static constexpr ct_dtype value = std::is_same_v<T, bool> ? CT_BOOL
                                      : sizeof(T) == 1        ? of(CT_I8, CT_U8)
                                      : sizeof(T) == 2        ? of(CT_I16, CT_U16)
                                      : sizeof(T) == 4        ? of(CT_I32, CT_U32)
                                                              : of(CT_I64, CT_U64);
};
template <> struct dtype<float> {
    static constexpr ct_dtype value = CT_F32;
};
template <> struct dtype<double> {
    static constexpr ct_dtype value = CT_F64;
};
template <> struct dtype<std::complex<float>> {
    static constexpr ct_dtype value = CT_C64;
};
template <> struct dtype<std::complex<double>> {
    static constexpr ct_dtype value = CT_C128;
};
template <class T> inline constexpr ct_dtype dtype_v = dtype<std::remove_cv_t<T>>::value;

/* ---- Asynchronous calls --------------------------------------------------------------- */

/* A call that was started.  The destructor waits for it, since its buffers may end next. */
class work
{
  public:
    work() = default;
    work(work &&other) noexcept : work_(std::exchange(other.work_, nullptr))
    {
    }
    work &operator=(work &&other) noexcept
    {
        std::swap(work_, other.work_);
        return *this;
    }
    ~work()
    {
        if (work_)
            ct_wait(work_);
    }
    /* Does nothing if no call was started, or if it was waited for before. */
    result wait()
    {
        return done(work_ ? ct_wait(std::exchange(work_, nullptr)) : CT_OK);
    }
    result test(bool &is_done)
    {
        int flag = 1;
        const ct_status status = work_ ? ct_test(work_, &flag) : CT_OK;

        is_done = flag != 0;
        return done(status);
    }
#if defined(__cpp_exceptions)
    bool test()
    {
        bool is_done;

        test(is_done);
        return is_done;
    }
#endif
    /* For functions of ct.h that start a call: where they store the handle, or NULL without a
     * work.  A call that was started with it before must be over. */
    static ct_work **start(work *w) noexcept
    {
        return w ? &w->work_ : nullptr;
    }

  private:
    ct_work *work_ = nullptr;
};

/* ---- Groups ----------------------------------------------------------------------------- */

class group
{
  public:
    group() = default; /* empty */
    group(group &&other) noexcept
        : group_(std::exchange(other.group_, nullptr)), kind_(std::exchange(other.kind_, EMPTY))
    {
    }
    group &operator=(group &&other) noexcept
    {
        std::swap(group_, other.group_);
        std::swap(kind_, other.kind_);
        return *this;
    }
    /* Destroys the group unless it is the world, which belongs to ct::session. */
    ~group()
    {
        if (kind_ == OWNED && ct_is_initialized())
            ct_destroy_process_group(group_);
    }
    result close()
    {
        const kind before = std::exchange(kind_, EMPTY);

        return done(before == OWNED ? ct_destroy_process_group(std::exchange(group_, nullptr))
                                    : CT_OK);
    }

    static group world() noexcept
    {
        return group(CT_WORLD, WORLD);
    }
    /* The handle, for functions of ct.h.  An empty group has none: CT_WORLD would be another
     * group, so the program must not go on. */
    ct_group *get() const
    {
        if (kind_ != EMPTY)
            return group_;
        static const char why[] = "ct::group: this group was never made, was closed or moved";
#if defined(__cpp_exceptions)
        throw std::logic_error(why);
#else
        std::fprintf(stderr, "%s\n", why);
        std::abort();
#endif
    }
    int rank() const
    {
        return ct_rank(get());
    }
    int size() const
    {
        return ct_size(get());
    }

    /* Store the new group in `made`, and destroy what it was before. */
    result split(int color, int key, group &made) const
    {
        ct_group *handle = nullptr;
        const ct_status status = ct_split_group(get(), color, key, &handle);

        return made.take(status, handle);
    }
    static result of_ranks(const int *ranks, int count, group &made)
    {
        ct_group *handle = nullptr;
        const ct_status status = ct_new_group(ranks, count, &handle);

        return made.take(status, handle);
    }
#if defined(__cpp_exceptions)
    group split(int color, int key) const
    {
        group made;

        split(color, key, made);
        return made;
    }
    static group of_ranks(const int *ranks, int count)
    {
        group made;

        of_ranks(ranks, count, made);
        return made;
    }
#endif
    result set_timeout(int ms) const
    {
        return done(ct_set_timeout(get(), ms));
    }
    result abort() const
    {
        return done(ct_abort(get()));
    }
    bool should_stop() const
    {
        return ct_should_stop(get()) != 0;
    }

    /* The collectives.  n: elements, per rank as in ct.h.  With a `work` they only start. */
    result barrier(work *w = nullptr) const
    {
        return done(ct_barrier(get(), work::start(w)));
    }
    template <class T>
    result all_reduce(const T *send, T *recv, std::size_t n, ct_op op = CT_SUM,
                      work *w = nullptr) const
    {
        return done(ct_all_reduce(get(), send, recv, n, dtype_v<T>, op, work::start(w)));
    }
    template <class T> result broadcast(T *data, std::size_t n, int root, work *w = nullptr) const
    {
        return done(ct_broadcast(get(), data, n, dtype_v<T>, root, work::start(w)));
    }
    /* In place, on a std::vector, std::array, std::span or array. */
    template <class C> result all_reduce(C &&c, ct_op op = CT_SUM, work *w = nullptr) const
    {
        return all_reduce(std::data(c), std::data(c), std::size(c), op, w);
    }
    template <class C> result broadcast(C &&c, int root, work *w = nullptr) const
    {
        return broadcast(std::data(c), std::size(c), root, w);
    }
    template <class T>
    result reduce(const T *send, T *recv, std::size_t n, ct_op op, int root,
                  work *w = nullptr) const
    {
        return done(ct_reduce(get(), send, recv, n, dtype_v<T>, op, root, work::start(w)));
    }
    template <class T>
    result reduce_scatter(const T *send, T *recv, std::size_t n, ct_op op = CT_SUM,
                          work *w = nullptr) const
    {
        return done(ct_reduce_scatter(get(), send, recv, n, dtype_v<T>, op, work::start(w)));
    }
    template <class T>
    result gather(const T *send, T *recv, std::size_t n, int root, work *w = nullptr) const
    {
        return done(ct_gather(get(), send, recv, n, dtype_v<T>, root, work::start(w)));
    }
    template <class T>
    result all_gather(const T *send, T *recv, std::size_t n, work *w = nullptr) const
    {
        return done(ct_all_gather(get(), send, recv, n, dtype_v<T>, work::start(w)));
    }
    template <class T>
    result scatter(const T *send, T *recv, std::size_t n, int root, work *w = nullptr) const
    {
        return done(ct_scatter(get(), send, recv, n, dtype_v<T>, root, work::start(w)));
    }
    template <class T>
    result all_to_all(const T *send, T *recv, std::size_t n, work *w = nullptr) const
    {
        return done(ct_all_to_all(get(), send, recv, n, dtype_v<T>, work::start(w)));
    }

    /* Messages.  isend() and irecv() only start. */
    template <class T> result send(const T *data, std::size_t n, int to, int tag = 0) const
    {
        return done(ct_send(get(), data, n, dtype_v<T>, to, tag));
    }
    template <class T>
    result recv(T *data, std::size_t n, int from, int tag = 0, int *sender = nullptr) const
    {
        return done(ct_recv(get(), data, n, dtype_v<T>, from, tag, sender));
    }
    template <class T> result isend(const T *data, std::size_t n, int to, int tag, work &w) const
    {
        return done(ct_isend(get(), data, n, dtype_v<T>, to, tag, work::start(&w)));
    }
    template <class T> result irecv(T *data, std::size_t n, int from, int tag, work &w) const
    {
        return done(ct_irecv(get(), data, n, dtype_v<T>, from, tag, work::start(&w)));
    }

  private:
    enum kind { EMPTY, WORLD, OWNED };

    group(ct_group *handle, kind k) noexcept : group_(handle), kind_(k)
    {
    }
    result take(ct_status status, ct_group *handle)
    {
        if (status == CT_OK)
            *this = group(handle, OWNED);
        return done(status);
    }

    ct_group *group_ = nullptr;
    kind kind_ = EMPTY;
};

/* ---- Start and end ------------------------------------------------------------------- */

/* The process's part in the job.  Create it before other objects of this header, so that it is
 * destroyed after them. */
class session
{
  public:
#if defined(__cpp_exceptions)
    explicit session(const ct_init_options *options = nullptr)
    {
        open(options);
    }
    session(session &&) = delete;
#else
    session() = default;
    session(session &&) = delete;
#endif
    result open(const ct_init_options *options = nullptr)
    {
        return done(ct_init_process_group(options));
    }
    result close()
    {
        return done(ct_is_initialized() ? ct_destroy_process_group(CT_WORLD) : CT_OK);
    }
    ~session()
    {
        if (ct_is_initialized())
            ct_destroy_process_group(CT_WORLD);
    }
};

/* ---- The store ------------------------------------------------------------------------ */

/* The default store (ct_store_default()).  For other stores see ct.h. */
class store
{
  public:
    result set(const std::string &key, const std::string &value)
    {
        return done(ct_store_set(ct_store_default(), key.c_str(), value.data(), value.size()));
    }
    /* Waits until the key exists; timeout_ms is -1 for the store's own limit. */
    result get(const std::string &key, std::string &value, int timeout_ms = -1)
    {
        void *bytes = nullptr;
        std::size_t size = 0;
        const ct_status status =
            ct_store_get(ct_store_default(), key.c_str(), timeout_ms, &bytes, &size);

        if (status == CT_OK)
            value.assign(static_cast<const char *>(bytes), size);
        std::free(bytes);
        return done(status);
    }
    result add(const std::string &key, std::int64_t delta, std::int64_t &sum)
    {
        return done(ct_store_add(ct_store_default(), key.c_str(), delta, &sum));
    }
#if defined(__cpp_exceptions)
    std::string get(const std::string &key, int timeout_ms = -1)
    {
        std::string value;

        get(key, value, timeout_ms);
        return value;
    }
    std::int64_t add(const std::string &key, std::int64_t delta)
    {
        std::int64_t sum = 0;

        add(key, delta, sum);
        return sum;
    }
#endif
};

} // namespace ct

#endif
