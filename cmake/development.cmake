# SPDX-License-Identifier: Apache-2.0
# Compiler settings of a top-level build. They are set on directories, not on the library target, so
# that no consumer ever sees them.
if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "Debug, Release, RelWithDebInfo or MinSizeRel" FORCE)
endif()

set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_COMPILE_WARNING_AS_ERROR ${GROWPAGE_WERROR})
# clang counts int used as an index into -Wconversion, g++ does not: the same rules for both.
add_compile_options(-Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wno-sign-conversion)

find_program(GROWPAGE_CCACHE ccache)
mark_as_advanced(GROWPAGE_CCACHE)
if(GROWPAGE_CCACHE AND NOT DEFINED CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${GROWPAGE_CCACHE})
endif()

if(GROWPAGE_COVERAGE)
  # Threads share the counters, hence atomic: a torn counter can come out negative.
  add_compile_options(--coverage -fprofile-update=atomic)
  add_link_options(--coverage)
  find_program(GROWPAGE_GCOVR gcovr REQUIRED)
  # Run after the tests. Line coverage of the library only; tests and examples do not count.
  add_custom_target(
    coverage-report
    COMMAND
      ${GROWPAGE_GCOVR} --root ${PROJECT_SOURCE_DIR} --object-directory ${PROJECT_BINARY_DIR}
      --filter ${PROJECT_SOURCE_DIR}/include/ --filter ${PROJECT_SOURCE_DIR}/src/ -j 2
      --sort-percentage --print-summary --fail-under-line 95 ${PROJECT_BINARY_DIR}
    WORKING_DIRECTORY ${PROJECT_SOURCE_DIR}
    USES_TERMINAL VERBATIM)
endif()
