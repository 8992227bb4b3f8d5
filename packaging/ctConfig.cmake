# SPDX-License-Identifier: Apache-2.0
#   find_package(ct 0.2 REQUIRED)
#   target_link_libraries(app PRIVATE ct::ct)
# libct opens other libraries (libssl, libcuda, NCCL) at run time, so none has to be found here.
include(${CMAKE_CURRENT_LIST_DIR}/ctTargets.cmake)
