# SPDX-License-Identifier: Apache-2.0
# Headers, library, CMake package and pkg-config file; all relocatable.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)
set(growpage_cmake_dir ${CMAKE_INSTALL_LIBDIR}/cmake/growpage)

install(
  TARGETS growpage
  EXPORT growpageTargets
  RUNTIME COMPONENT growpage_runtime
  LIBRARY COMPONENT growpage_runtime NAMELINK_COMPONENT growpage_development
  ARCHIVE COMPONENT growpage_development
  INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(
  DIRECTORY ${PROJECT_SOURCE_DIR}/include/growpage
  DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
  COMPONENT growpage_development
  FILES_MATCHING PATTERN "*.hpp" PATTERN "*.ipp")
install(
  EXPORT growpageTargets
  NAMESPACE growpage::
  DESTINATION ${growpage_cmake_dir}
  COMPONENT growpage_development)

# What a consumer of the installed copy must find: only a static archive needs our link libraries.
set(growpage_cmake_dependencies "find_dependency(fmt)")
set(growpage_pc_cflags "")
set(growpage_pc_libs "-L\${libdir} -lgrowpage_cpp")
set(growpage_pc_private "fmt libhwy")
if(GROWPAGE_HEADER_ONLY)
  set(growpage_pc_cflags " -DGROWPAGE_HEADER_ONLY -DFMT_HEADER_ONLY=1")
  set(growpage_pc_libs "")
  set(growpage_pc_private "libxxhash")
elseif(BUILD_SHARED_LIBS)
  set(growpage_cmake_dependencies "")
  set(growpage_pc_private "")
else()
  string(APPEND growpage_cmake_dependencies "\nfind_dependency(hwy)")
endif()
if(GROWPAGE_CUDA)
  string(APPEND growpage_cmake_dependencies "\nfind_dependency(CUDAToolkit)")
endif()
file(RELATIVE_PATH growpage_pc_prefix /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)

configure_package_config_file(
  ${PROJECT_SOURCE_DIR}/cmake/growpageConfig.cmake.in ${PROJECT_BINARY_DIR}/growpageConfig.cmake
  INSTALL_DESTINATION ${growpage_cmake_dir} NO_SET_AND_CHECK_MACRO)
write_basic_package_version_file(
  ${PROJECT_BINARY_DIR}/growpageConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)
configure_file(${PROJECT_SOURCE_DIR}/cmake/growpage.pc.in ${PROJECT_BINARY_DIR}/growpage.pc @ONLY)
install(
  FILES ${PROJECT_BINARY_DIR}/growpageConfig.cmake
        ${PROJECT_BINARY_DIR}/growpageConfigVersion.cmake
  DESTINATION ${growpage_cmake_dir}
  COMPONENT growpage_development)
install(
  FILES ${PROJECT_BINARY_DIR}/growpage.pc
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig
  COMPONENT growpage_development)
