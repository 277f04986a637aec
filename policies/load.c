/* SPDX-License-Identifier: Apache-2.0
 *
 * Outside policies: a shared object that exports moesim_policy_export.
 */
#include "policies/load.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "policies/registry.h"

typedef const moesim_policy *export_fn(void);

static moesim_code take(void *library, const char *path, const moesim_policy **policy, moesim_error *err)
{
    void *symbol = dlsym(library, MOESIM_POLICY_SYMBOL);
    export_fn *export;
    if (symbol == NULL)
        return moesim_fail(err, MOESIM_E_POLICY,
                           "%s: exports no " MOESIM_POLICY_SYMBOL "; an outside policy defines "
                           "'const moesim_policy *" MOESIM_POLICY_SYMBOL "(void)' with default visibility", path);
    memcpy(&export, &symbol, sizeof export);   /* ISO C has no cast from object to function pointer */
    *policy = export();
    return moesim_policy_check(*policy, path, err);
}

moesim_code moesim_policy_load(const char *path, const moesim_policy **policy, void **library, moesim_error *err)
{
    char here[4096];
    *policy = NULL;
    *library = NULL;
    /* Without a slash dlopen would search the system's library path instead of this folder. */
    const int chars = snprintf(here, sizeof here, "%s%s", strchr(path, '/') != NULL ? "" : "./", path);
    if (chars < 0 || (size_t)chars >= sizeof here)
        return moesim_fail(err, MOESIM_E_USAGE, "the path of the outside policy is longer than %zu characters",
                           sizeof here - 1);
    void *opened = dlopen(here, RTLD_NOW | RTLD_LOCAL);
    if (opened == NULL) {
        const char *why = dlerror();
        return moesim_fail(err, MOESIM_E_POLICY, "%s: cannot be loaded as an outside policy: %s", path,
                           why != NULL ? why : "unknown reason");
    }
    const moesim_code code = take(opened, path, policy, err);
    if (code != MOESIM_OK) {
        *policy = NULL;
        dlclose(opened);
        return code;
    }
    *library = opened;
    return MOESIM_OK;
}
