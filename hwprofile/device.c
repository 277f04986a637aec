/* SPDX-License-Identifier: Apache-2.0
 *
 * The table of backends. Alone in its library: it is what names them, and they build on the rest of this folder.
 */
#include "hwprofile/device.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/options.h"
#include "hwprofile/device_parts.h"

const moesim_device_ops *const *moesim_device_backends(void)
{
    static const moesim_device_ops *const backends[] = {
#ifdef MOESIM_CUDA
        &moesim_device_cuda,
#endif
        &moesim_device_host, &moesim_device_null, NULL
    };
    return backends;
}

moesim_code moesim_device_find(const char *name, const moesim_device_ops **out, moesim_error *err)
{
    const char *names[8];
    size_t n = 0;
    for (const moesim_device_ops *const *d = moesim_device_backends(); *d != NULL; d++) {
        if (strcasecmp((*d)->name, name) == 0) {
            *out = *d;
            return MOESIM_OK;
        }
        if (n + 1 < sizeof names / sizeof names[0])
            names[n++] = (*d)->name;
    }
    names[n] = NULL;
    if (strcasecmp(name, "cuda") == 0)
        return moesim_fail(err, MOESIM_E_USAGE, "device: this moesim-device was built without CUDA; build it where nvcc is "
                           "found (meson setup -Dcuda=enabled), or use host");
    const char *near = moesim_nearest(name, names);
    char hint[64] = "";
    if (near != NULL)
        snprintf(hint, sizeof hint, "; did you mean '%s'?", near);
    char list[128] = "";
    for (size_t i = 0, at = 0; i < n; i++)
        at += (size_t)snprintf(list + at, sizeof list - at, "%s%s", i > 0 ? ", " : "", names[i]);
    return moesim_fail(err, MOESIM_E_USAGE, "device: there is no '%s'%s (%s)", name, hint, list);
}
