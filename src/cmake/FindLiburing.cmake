# Finds liburing, which has no CMake package of its own. Defines the target Liburing::Liburing.
find_package(PkgConfig QUIET)
if(PkgConfig_FOUND)
  pkg_check_modules(PC_Liburing QUIET liburing)
endif()
find_path(Liburing_INCLUDE_DIR NAMES liburing.h HINTS ${PC_Liburing_INCLUDEDIR} ${PC_Liburing_INCLUDE_DIRS})
find_library(Liburing_LIBRARY NAMES uring HINTS ${PC_Liburing_LIBDIR} ${PC_Liburing_LIBRARY_DIRS})
set(Liburing_VERSION ${PC_Liburing_VERSION})

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(
  Liburing
  REQUIRED_VARS Liburing_LIBRARY Liburing_INCLUDE_DIR
  VERSION_VAR Liburing_VERSION REASON_FAILURE_MESSAGE "install liburing-dev (Debian, Ubuntu) or set CMAKE_PREFIX_PATH")
mark_as_advanced(Liburing_INCLUDE_DIR Liburing_LIBRARY)

if(Liburing_FOUND AND NOT TARGET Liburing::Liburing)
  add_library(Liburing::Liburing UNKNOWN IMPORTED)
  set_target_properties(Liburing::Liburing PROPERTIES IMPORTED_LOCATION "${Liburing_LIBRARY}" INTERFACE_INCLUDE_DIRECTORIES
                                                                             "${Liburing_INCLUDE_DIR}")
endif()
