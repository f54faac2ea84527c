# SPDX-License-Identifier: Apache-2.0
# growpage::growpage, compiled (src/*.cpp) or header-only.
find_package(fmt REQUIRED)
find_path(GROWPAGE_XXHASH_INCLUDE_DIR xxhash.h REQUIRED)  # used inline: no library to link
mark_as_advanced(GROWPAGE_XXHASH_INCLUDE_DIR)

if(GROWPAGE_HEADER_ONLY)
  add_library(growpage INTERFACE)
  set(growpage_scope INTERFACE)
  target_compile_definitions(growpage INTERFACE GROWPAGE_HEADER_ONLY)
  target_link_libraries(growpage INTERFACE fmt::fmt-header-only)
  target_include_directories(growpage INTERFACE $<BUILD_INTERFACE:${GROWPAGE_XXHASH_INCLUDE_DIR}>)
else()
  find_package(hwy REQUIRED)
  file(GLOB growpage_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/*.cpp)
  add_library(growpage ${growpage_sources})
  set(growpage_scope PUBLIC)
  target_link_libraries(growpage PRIVATE fmt::fmt hwy::hwy)
  target_include_directories(growpage PRIVATE ${GROWPAGE_XXHASH_INCLUDE_DIR})
  # Static archives end up inside shared engines. The ABI may change with every minor until 1.0.
  set_target_properties(
    growpage
    PROPERTIES OUTPUT_NAME growpage_cpp  # libgrowpage is the C library
               POSITION_INDEPENDENT_CODE ON
               VERSION ${PROJECT_VERSION}
               SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})
endif()
add_library(growpage::growpage ALIAS growpage)
target_compile_features(growpage ${growpage_scope} cxx_std_20)
target_include_directories(growpage ${growpage_scope} $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
                                                      $<INSTALL_INTERFACE:include>)
