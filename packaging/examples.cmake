# SPDX-License-Identifier: Apache-2.0
# Builds these examples with the libct that is installed:
#   cmake -S . -B build && cmake --build build && ctrun --nproc-per-node=4 build/hello
cmake_minimum_required(VERSION 3.16)
project(examples C)
find_package(ct REQUIRED)
file(GLOB sources *.c)
foreach(source ${sources})
  get_filename_component(name ${source} NAME_WE)
  add_executable(${name} ${source})
  target_link_libraries(${name} PRIVATE ct::ct m ${CMAKE_DL_LIBS})
endforeach()
