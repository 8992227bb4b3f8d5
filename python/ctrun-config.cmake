# SPDX-License-Identifier: Apache-2.0
# For programs in C that are built against the wheel:
#   cmake -Dctrun_DIR="$(python -c 'import ctrun; print(ctrun.cmake_dir())')" ...
#   find_package(ctrun REQUIRED)
#   target_link_libraries(app PRIVATE ct::ct)
get_filename_component(ctrun_root "${CMAKE_CURRENT_LIST_DIR}/.." ABSOLUTE)
if(NOT TARGET ct::ct)
  add_library(ct::ct SHARED IMPORTED)
  set_target_properties(ct::ct PROPERTIES
    IMPORTED_LOCATION "${ctrun_root}/lib/libct.so.0"
    IMPORTED_SONAME libct.so.0
    INTERFACE_INCLUDE_DIRECTORIES "${ctrun_root}/include")
endif()
