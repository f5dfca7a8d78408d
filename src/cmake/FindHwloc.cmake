# Finds hwloc, which has no CMake package of its own. Defines the target Hwloc::Hwloc.
find_package(PkgConfig QUIET)
if(PkgConfig_FOUND)
  pkg_check_modules(PC_Hwloc QUIET hwloc)
endif()
find_path(Hwloc_INCLUDE_DIR NAMES hwloc.h HINTS ${PC_Hwloc_INCLUDEDIR} ${PC_Hwloc_INCLUDE_DIRS})
find_library(Hwloc_LIBRARY NAMES hwloc HINTS ${PC_Hwloc_LIBDIR} ${PC_Hwloc_LIBRARY_DIRS})
set(Hwloc_VERSION ${PC_Hwloc_VERSION})

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(
  Hwloc
  REQUIRED_VARS Hwloc_LIBRARY Hwloc_INCLUDE_DIR
  VERSION_VAR Hwloc_VERSION REASON_FAILURE_MESSAGE "install libhwloc-dev (Debian, Ubuntu) or set CMAKE_PREFIX_PATH")
mark_as_advanced(Hwloc_INCLUDE_DIR Hwloc_LIBRARY)

if(Hwloc_FOUND AND NOT TARGET Hwloc::Hwloc)
  add_library(Hwloc::Hwloc UNKNOWN IMPORTED)
  set_target_properties(Hwloc::Hwloc PROPERTIES IMPORTED_LOCATION "${Hwloc_LIBRARY}" INTERFACE_INCLUDE_DIRECTORIES
                                                                             "${Hwloc_INCLUDE_DIR}")
endif()
