# Exponentials and logarithms of one number, without branches: the compiler makes vector instructions of loops of them.

from mdlearn._solvers.clones cimport MDLEARN_LANES

cdef extern from *:
    """
    #include <stdint.h>
    /* Of x <= 709: a limit would cost a fifth of all. Adding 1.5 2^52 leaves the nearest integer in the last bits. */
    MDLEARN_INLINE double mdlearn_exp_low_double(double x)
    {
        double v = x < -708.0 ? -708.0 : x, t, whole, r, s, p, q;
        union { double number; uint64_t bits; } power, value;
        t = v * 1.4426950408889634 + 6755399441055744.0;
        whole = t - 6755399441055744.0;
        r = (v - whole * 0.693147180369123816490) - whole * 1.90821492927058770002e-10;
        s = r * r;
        p = 1.0 / 479001600.0;
        q = 1.0 / 6227020800.0;
        p = p * s + 1.0 / 3628800.0;
        q = q * s + 1.0 / 39916800.0;
        p = p * s + 1.0 / 40320.0;
        q = q * s + 1.0 / 362880.0;
        p = p * s + 1.0 / 720.0;
        q = q * s + 1.0 / 5040.0;
        p = p * s + 1.0 / 24.0;
        q = q * s + 1.0 / 120.0;
        p = p * s + 0.5;
        q = q * s + 1.0 / 6.0;
        p = p + q * r;
        p = p * s + r;
        p = p + 1.0;
        power.number = t;
        value.number = p;
        value.bits += power.bits << 52;
        return x < -708.0 ? 0.0 : value.number;
    }

    MDLEARN_INLINE double mdlearn_exp_one_double(double x)
    {
        return mdlearn_exp_low_double(x > 709.0 ? 709.0 : x);
    }

    /* Of x <= 88. Adding 1.5 2^23 leaves the nearest integer in the last bits. */
    MDLEARN_INLINE float mdlearn_exp_low_float(float x)
    {
        float v = x < -87.0f ? -87.0f : x, t, whole, r, s, p, q;
        union { float number; uint32_t bits; } power, value;
        t = v * 1.44269504f + 12582912.0f;
        whole = t - 12582912.0f;
        r = (v - whole * 0.693359375f) - whole * -2.12194440e-4f;
        s = r * r;
        p = 1.0f / 720.0f;
        q = 1.0f / 5040.0f;
        p = p * s + 1.0f / 24.0f;
        q = q * s + 1.0f / 120.0f;
        p = p * s + 0.5f;
        q = q * s + 1.0f / 6.0f;
        p = p + q * r;
        p = p * s + r;
        p = p + 1.0f;
        power.number = t;
        value.number = p;
        value.bits += power.bits << 23;
        return x < -87.0f ? 0.0f : value.number;
    }

    /* log 2^k (1 + f) with sqrt(1/2) <= 1 + f <= sqrt(2): the polynomial of fdlibm. */
    MDLEARN_INLINE double mdlearn_log_of_parts(double k, double f)
    {
        const double s = f / (2.0 + f), z = s * s, w = z * z, half = 0.5 * f * f;
        double p = 1.531383769920937332e-01, q = 1.479819860511658591e-01;
        p = p * w + 2.222219843214978396e-01;
        q = q * w + 1.818357216161805012e-01;
        p = p * w + 3.999999999940941908e-01;
        q = q * w + 2.857142874366239149e-01;
        q = q * w + 6.666666666666735130e-01;
        return k * 6.93147180369123816490e-01
            - ((half - (s * (half + (q * z + p * w)) + k * 1.90821492927058770002e-10)) - f);
    }

    /* log(1 + e) of 0 <= e <= 1. */
    MDLEARN_INLINE double mdlearn_log1p_one(double e)
    {
        return mdlearn_log_of_parts(e > 0.41421356 ? 1.0 : 0.0, e > 0.41421356 ? 0.5 * (e - 1.0) : e);
    }

    /* x log x of x >= 0; 0 below 1e-300. */
    MDLEARN_INLINE double mdlearn_x_log_x(double x)
    {
        union { double number; uint64_t bits; } part, power;
        part.number = x < 1e-300 ? 1.0 : x;
        part.bits += 0x3ff0000000000000ULL - 0x3fe6a09e00000000ULL;
        /* The exponent as the last bits of 2^52. */
        power.bits = (part.bits >> 52) | 0x4330000000000000ULL;
        part.bits = (part.bits & 0x000fffffffffffffULL) + 0x3fe6a09e00000000ULL;
        return x * mdlearn_log_of_parts(power.number - (4503599627370496.0 + 1023.0), part.number - 1.0);
    }
    """
    double mdlearn_exp_one_double(double x) noexcept nogil
    double mdlearn_exp_low_double(double x) noexcept nogil
