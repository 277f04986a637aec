/* SPDX-License-Identifier: Apache-2.0
 *
 * The looks.
 */
#include "plots/look.h"

#include <stddef.h>

#define PICK(list, i) (list)[(i) % (sizeof(list) / sizeof(list)[0])]

static const char *const colours[] = { "#0072b2", "#e69f00", "#009e73", "#d55e00", "#56b4e9", "#cc79a7", "#000000",
                                       "#999999", "#882255", "#332288", "#999933", "#44aa99" };
#define OWN_COLOURS 7u           /* of Okabe and Ito */

static const char *const parts[] = { "#bbbbbb", "#e3e3e3", "#777777", "#009e73", "#0072b2",
                                     "#e69f00", "#d55e00", "#f0e442", "#56b4e9", "#cc79a7" };
static const char *const marks[] = { "7", "5", "9", "11", "13", "15" };
static const char *const open_marks[] = { "6", "4", "8", "10", "12", "14" };
static const char *const dashes[] = { "1", "(12,3)", "(12,3,2,3)", "(4,2)" };
static const char *const dashed[] = { "(8,4)", "(4,3)", "(8,3,2,3)", "(2,2)", "(12,4)", "(8,3,2,3,2,3)" };

const char *moesim_look_colour(uint32_t look)
{
    return PICK(colours, look);
}

const char *moesim_look_part(uint32_t look)
{
    return PICK(parts, look);
}

const char *moesim_look_mark(uint32_t look)
{
    return PICK(marks, look);
}

const char *moesim_look_open(uint32_t look)
{
    return PICK(open_marks, look);
}

const char *moesim_look_dash(uint32_t look)
{
    return PICK(dashes, look / OWN_COLOURS);
}

const char *moesim_look_dashed(uint32_t look)
{
    return PICK(dashed, look);
}
