/* SPDX-License-Identifier: Apache-2.0
 *
 * SHA-256 (nettle), written as 64 hexadecimal digits: what `sha256sum` prints for the same bytes.
 */
#ifndef MOESIM_BASE_DIGEST_H
#define MOESIM_BASE_DIGEST_H

#include <stddef.h>

#include "base/error.h"

#define MOESIM_DIGEST_CHARS 65   /* with the final zero */

typedef struct moesim_digest moesim_digest;

moesim_code moesim_digest_create(moesim_digest **out, moesim_error *err);
void moesim_digest_update(moesim_digest *d, const void *data, size_t bytes);
void moesim_digest_hex(moesim_digest *d, char out[MOESIM_DIGEST_CHARS]);   /* finishes; the object starts again */
void moesim_digest_destroy(moesim_digest **d);

/* Of a whole file; polls moesim_interrupted(). */
moesim_code moesim_digest_file(const char *path, char out[MOESIM_DIGEST_CHARS], moesim_error *err);

#endif
