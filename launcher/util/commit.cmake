# SPDX-License-Identifier: Apache-2.0
# Writes OUT, a header with the commit of the tree SOURCE.  Each build runs this script, and the
# header changes only if the commit does.
cmake_minimum_required(VERSION 3.16...3.25)
execute_process(COMMAND git -C ${SOURCE} rev-parse --show-toplevel
  OUTPUT_VARIABLE top OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
set(commit "unknown, built outside of git")
if(top STREQUAL SOURCE) # another project's repository may contain this tree
  execute_process(COMMAND git -C ${SOURCE} describe --always --dirty --abbrev=10 --exclude=*
    OUTPUT_VARIABLE commit OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
elseif(EXISTS ${SOURCE}/commit) # scripts/deb builds a copy of the tree, scripts/release an archive
  file(STRINGS ${SOURCE}/commit commit)
endif()
set(text "#define CT_COMMIT \"${commit}\"\n")
set(before "")
if(EXISTS ${OUT})
  file(READ ${OUT} before)
endif()
if(NOT before STREQUAL text)
  file(WRITE ${OUT} "${text}")
endif()
