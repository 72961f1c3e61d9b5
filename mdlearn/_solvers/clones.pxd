# Versions of a C function for wider vectors, chosen when a module is loaded. All do the same operations: same bits.

cdef extern from *:
    """
    #ifndef MDLEARN_CLONES
    #if defined(__linux__)
    #include <features.h>
    #endif
    #if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__) && defined(__GLIBC__) \\
        && !defined(__SANITIZE_ADDRESS__)
    /* Without FMA: sums are rounded as everywhere else. Nobody reads the flags of exceptions: selections may be masks. */
    #define MDLEARN_CLONES \\
        __attribute__((target_clones("avx512f", "avx2", "default"), optimize("no-trapping-math", "fp-contract=off")))
    #else
    #define MDLEARN_CLONES
    #endif
    #if defined(_MSC_VER)
    #define MDLEARN_INLINE static __forceinline
    #elif defined(__GNUC__)
    #define MDLEARN_INLINE static inline __attribute__((always_inline))
    #else
    #define MDLEARN_INLINE static inline
    #endif
    #endif
    #if defined(_MSC_VER)
    #define MDLEARN_ALONE __restrict
    #else
    #define MDLEARN_ALONE restrict
    #endif
    #if defined(__GNUC__) || defined(__clang__)
    #define MDLEARN_PREFETCH(address) __builtin_prefetch(address)
    #else
    #define MDLEARN_PREFETCH(address) ((void)0)
    #endif
    #define MDLEARN_LANES 16
    /* Eight sums side by side, as the compiler's own vectors where it has them. */
    #if defined(__GNUC__)
    typedef double mdlearn_sums __attribute__((vector_size(64), aligned(8), may_alias));
    #define MDLEARN_ADD(sums, x, y) sums += *(const mdlearn_sums *)(x) * *(const mdlearn_sums *)(y)
    #else
    typedef double mdlearn_sums[8];
    #define MDLEARN_ADD(sums, x, y) \\
        do { int lane_; for (lane_ = 0; lane_ < 8; lane_++) (sums)[lane_] += (x)[lane_] * (y)[lane_]; } while (0)
    #endif
    #define MDLEARN_SUM(p) ((((p)[0] + (p)[4]) + ((p)[2] + (p)[6])) + (((p)[1] + (p)[5]) + ((p)[3] + (p)[7])))
    """
    void MDLEARN_PREFETCH(const void *address) noexcept nogil
    enum:
        MDLEARN_LANES  # numbers that loops treat side by side


cdef inline void prefetch(const void* start, Py_ssize_t size) noexcept nogil:
    """Ask for the memory of a row that loops come to soon."""
    cdef Py_ssize_t k
    for k in range(0, min(size, 2048), 64):
        MDLEARN_PREFETCH(<const char*> start + k)
