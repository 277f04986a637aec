/* SPDX-License-Identifier: Apache-2.0
 *
 * The zstd filter as a loadable HDF5 plug-in, so that h5py, h5dump and h5ls open zstd traces too: put the folder of this
 * shared object into HDF5_PLUGIN_PATH. HDF5 looks the two functions up by name.
 */
#include "traces/filter.h"

#include <hdf5.h>
#include <H5PLextern.h>

H5PL_type_t H5PLget_plugin_type(void)
{
    return H5PL_TYPE_FILTER;
}

const void *H5PLget_plugin_info(void)
{
    return moesim_filter_zstd_class();
}
