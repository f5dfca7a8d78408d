# The CMake package: headers, archives, the targets forebay::forebay, forebay::testing and (built with CUDA)
# forebay::cuda, and the Find modules for dependencies that have no package of their own.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)
set(forebay_package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/forebay)

set_target_properties(forebay_package_testing PROPERTIES EXPORT_NAME testing)
install(
  TARGETS forebay forebay_package_testing
  EXPORT forebay-targets
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}
  FILE_SET HEADERS DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(
  EXPORT forebay-targets
  NAMESPACE forebay::
  DESTINATION ${forebay_package_dir})

if(TARGET forebay_package_cuda)
  set_target_properties(forebay_package_cuda PROPERTIES EXPORT_NAME cuda)
  install(
    TARGETS forebay_package_cuda
    EXPORT forebay-cuda-targets
    ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}
    FILE_SET HEADERS DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
  install(
    EXPORT forebay-cuda-targets
    NAMESPACE forebay::
    DESTINATION ${forebay_package_dir})
endif()

configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/forebay-config.cmake.in
                              ${PROJECT_BINARY_DIR}/package/forebay-config.cmake INSTALL_DESTINATION ${forebay_package_dir})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/package/forebay-config-version.cmake COMPATIBILITY SameMinorVersion)
install(
  FILES ${PROJECT_BINARY_DIR}/package/forebay-config.cmake
        ${PROJECT_BINARY_DIR}/package/forebay-config-version.cmake
        ${CMAKE_CURRENT_LIST_DIR}/FindLiburing.cmake
        ${CMAKE_CURRENT_LIST_DIR}/FindHwloc.cmake
        ${CMAKE_CURRENT_LIST_DIR}/FindXxhash.cmake
  DESTINATION ${forebay_package_dir})
