/* SPDX-License-Identifier: Apache-2.0
 *
 * Colours, marks and dashes by number, as gnuplot writes them. Colours are those of Okabe and Ito (2008), which people with any
 * common form of colour blindness can tell apart, without the yellow that vanishes on white, then some of Tol's muted scheme;
 * there dashes and marks help to tell series apart.
 */
#ifndef MOESIM_PLOTS_LOOK_H
#define MOESIM_PLOTS_LOOK_H

#include <stdint.h>

const char *moesim_look_colour(uint32_t look);
const char *moesim_look_part(uint32_t look);     /* of a stack: neighbours differ in lightness too */
const char *moesim_look_mark(uint32_t look);     /* filled */
#define MOESIM_LOOK_MARKS 6u       /* shapes; more looks repeat them */
const char *moesim_look_open(uint32_t look);     /* the same shape hollow */
const char *moesim_look_dash(uint32_t look);     /* solid for the first colours */
const char *moesim_look_dashed(uint32_t look);   /* never solid */

#endif
