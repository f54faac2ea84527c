# SPDX-License-Identifier: Apache-2.0
# CUDA kernels on the CPU, for tests: the target growpage_simt (tests/simt) and two functions. There
# is no such target where the toolkit's headers or Boost.Context are missing; no GPU is needed.
option(GROWPAGE_SIMT "Run the CUDA kernels on the CPU in the tests" ON)
if(NOT GROWPAGE_SIMT)
  return()
endif()
# clang checks the operands even of the PTX in CUB that is never called.
if(NOT CMAKE_CXX_COMPILER_ID STREQUAL GNU)
  message(STATUS "No tests of the CUDA kernels on the CPU: they need g++")
  return()
endif()
find_package(CUDAToolkit QUIET)
find_package(Boost QUIET COMPONENTS context)
find_package(Python3 QUIET COMPONENTS Interpreter)
if(NOT CUDAToolkit_FOUND OR NOT Boost_FOUND OR NOT Python3_FOUND)
  message(STATUS "No tests of the CUDA kernels on the CPU: the CUDA toolkit's headers, "
                 "Boost.Context or python3 not found")
  return()
endif()

# CUB's place depends on the toolkit's version: <include>/cccl since 13, <include> before.
find_path(
  GROWPAGE_CUB_INCLUDE_DIR cub/cub.cuh
  HINTS ${CUDAToolkit_INCLUDE_DIRS}
  PATH_SUFFIXES cccl
  NO_DEFAULT_PATH)
mark_as_advanced(GROWPAGE_CUB_INCLUDE_DIR)
set(growpage_simt_dir ${PROJECT_SOURCE_DIR}/tests/simt)
set(growpage_simt_cub_dir ${PROJECT_BINARY_DIR}/simt/cub)
execute_process(
  COMMAND ${Python3_EXECUTABLE} ${growpage_simt_dir}/patch_cub.py ${GROWPAGE_CUB_INCLUDE_DIR}
          ${growpage_simt_cub_dir}
  RESULT_VARIABLE growpage_simt_patched)
if(NOT growpage_simt_patched EQUAL 0)
  message(FATAL_ERROR "tests/simt/patch_cub.py does not know the CUB of CUDA "
                      "${CUDAToolkit_VERSION}; -DGROWPAGE_SIMT=OFF leaves out the tests that need it")
endif()
set_property(
  DIRECTORY
  APPEND
  PROPERTY CMAKE_CONFIGURE_DEPENDS ${growpage_simt_dir}/patch_cub.py)

file(GLOB growpage_simt_sources CONFIGURE_DEPENDS ${growpage_simt_dir}/runtime/*.cpp)
add_library(growpage_simt STATIC ${growpage_simt_sources})
target_compile_features(growpage_simt PUBLIC cxx_std_20)
target_include_directories(growpage_simt PUBLIC ${PROJECT_SOURCE_DIR}/tests)
target_include_directories(
  growpage_simt SYSTEM BEFORE PUBLIC ${growpage_simt_cub_dir} ${CUDAToolkit_INCLUDE_DIRS}
                                     ${GROWPAGE_CUB_INCLUDE_DIR})
# Kernels read vectors of halves as uint4, which CUDA allows; their pragmas are nvcc's; and g++ takes
# values that CUB writes in one branch and reads in another for uninitialised.
target_compile_options(
  growpage_simt PUBLIC -fno-strict-aliasing -Wno-unknown-pragmas
                       $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>)
# Optimised in every build: it is the time that the tests of the kernels take.
target_compile_options(growpage_simt PRIVATE -O2)
target_link_libraries(growpage_simt PUBLIC Boost::context PRIVATE fmt::fmt)

# What the sanitizers need follows from the build's own flags.
set(growpage_simt_flags "${CMAKE_CXX_FLAGS}")
if(CMAKE_BUILD_TYPE)
  string(TOUPPER ${CMAKE_BUILD_TYPE} growpage_simt_config)
  string(APPEND growpage_simt_flags " ${CMAKE_CXX_FLAGS_${growpage_simt_config}}")
endif()
set(growpage_simt_variant plain)
if(growpage_simt_flags MATCHES "-fsanitize=[a-z,]*address")
  set(growpage_simt_variant address)
elseif(growpage_simt_flags MATCHES "-fsanitize=[a-z,]*thread")
  set(growpage_simt_variant thread)
  # The runtime's own state belongs to all fibres, which is no race.
  target_compile_options(growpage_simt PRIVATE -fno-sanitize=thread)
  target_compile_definitions(growpage_simt PRIVATE SIMT_TSAN)
endif()

# growpage_add_emulated(<target> SOURCES a.cu b.cu …)
#
# A static library of kernels, compiled by the C++ compiler: each through a file of one line.
function(growpage_add_emulated target)
  cmake_parse_arguments(PARSE_ARGV 1 emulated "" "" SOURCES)
  add_library(${target} STATIC)
  foreach(source IN LISTS emulated_SOURCES)
    cmake_path(ABSOLUTE_PATH source NORMALIZE)
    cmake_path(GET source STEM LAST_ONLY name)
    set(unit ${CMAKE_CURRENT_BINARY_DIR}/${target}.dir/${name}.cu.cpp)
    file(CONFIGURE OUTPUT ${unit} CONTENT "#include \"${source}\"\n")
    target_sources(${target} PRIVATE ${unit})
  endforeach()
  target_link_libraries(${target} PUBLIC growpage_simt)
endfunction()

# growpage_add_seeded_tests(<name> COMMAND <executable> SEEDS 1 2 3)
#
# The tests <name>_seed_<n>: the same under other schedules.
function(growpage_add_seeded_tests name)
  cmake_parse_arguments(PARSE_ARGV 1 seeded "" "" "COMMAND;SEEDS")
  foreach(seed IN LISTS seeded_SEEDS)
    add_test(NAME ${name}_seed_${seed} COMMAND ${seeded_COMMAND})
    set_tests_properties(${name}_seed_${seed} PROPERTIES ENVIRONMENT SIMT_SEED=${seed} LABELS unit)
  endforeach()
endfunction()
