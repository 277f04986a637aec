/* SPDX-License-Identifier: Apache-2.0
 *
 * Narrowing of float to IEEE 754 half precision, bit by bit: round to nearest, ties to even, the same on every machine.
 * Values that came from half precision return to the same bits. Pure function, thread-safe.
 */
#ifndef MOESIM_TRACES_HALF_H
#define MOESIM_TRACES_HALF_H

#include <stdint.h>
#include <string.h>

/* Finite values beyond 65504 (after rounding) become infinite; NaN stays a quiet NaN with the top bits of its payload. */
static inline uint16_t moesim_half_from_float(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    const uint32_t sign = (bits >> 16) & 0x8000u;
    const uint32_t magnitude = bits & 0x7fffffffu;
    if (magnitude > 0x7f800000u)
        return (uint16_t)(sign | 0x7e00u | ((magnitude >> 13) & 0x1ffu));
    if (magnitude >= 0x477ff000u)   /* 65520 and more round to infinity */
        return (uint16_t)(sign | 0x7c00u);
    if (magnitude >= 0x38800000u) { /* normal: re-bias the exponent, round away 13 bits */
        const uint32_t odd = (magnitude >> 13) & 1u;
        return (uint16_t)(sign | ((magnitude - 0x38000000u + 0xfffu + odd) >> 13));
    }
    const uint32_t shift = 126u - (magnitude >> 23);   /* subnormal: units of 2^-24 */
    if (shift > 24u)
        return (uint16_t)sign;
    const uint32_t mantissa = (magnitude & 0x7fffffu) | 0x800000u;
    const uint32_t whole = mantissa >> shift, rest = mantissa & ((1u << shift) - 1u), half = 1u << (shift - 1u);
    return (uint16_t)(sign | (whole + (rest > half || (rest == half && (whole & 1u)) ? 1u : 0u)));
}

#endif
