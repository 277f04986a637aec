/* SPDX-License-Identifier: Apache-2.0
 *
 * One file of the cuda device, compiled for the CPU: MOESIM_SOURCE names it.
 */
#include MOESIM_SOURCE
