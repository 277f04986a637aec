cat >nv.json <<'END'
{ "nvbandwidth": { "CUDA Runtime Version": 13000, "Driver Version": "580.95.05", "git_version": "v0.8", "testcases": [
  { "name": "host_to_device_memcpy_ce", "status": "Passed", "bandwidth_description": "memcpy CE CPU(row) -> GPU(column) bandwidth (GB/s)",
    "bandwidth_matrix": [["55.63", "54.1"]], "sum": 109.73 },
  { "name": "device_to_host_memcpy_ce", "status": "Waived" },
  { "name": "host_to_device_memcpy_sm", "status": "Error", "error": "out of memory" } ] } }
END
moesim profile derive --nvbandwidth nv.json --dram 200GB/s --hbm 4.8TB/s --index 1 | sed -n '/^  link/,/^  dram/p;/^  dram/q'
