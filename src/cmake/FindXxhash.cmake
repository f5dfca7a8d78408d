# Finds xxHash, which has no CMake package of its own. Defines the target Xxhash::Xxhash.
find_package(PkgConfig QUIET)
if(PkgConfig_FOUND)
  pkg_check_modules(PC_Xxhash QUIET libxxhash)
endif()
find_path(Xxhash_INCLUDE_DIR NAMES xxhash.h HINTS ${PC_Xxhash_INCLUDEDIR} ${PC_Xxhash_INCLUDE_DIRS})
find_library(Xxhash_LIBRARY NAMES xxhash HINTS ${PC_Xxhash_LIBDIR} ${PC_Xxhash_LIBRARY_DIRS})
set(Xxhash_VERSION ${PC_Xxhash_VERSION})

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(
  Xxhash
  REQUIRED_VARS Xxhash_LIBRARY Xxhash_INCLUDE_DIR
  VERSION_VAR Xxhash_VERSION REASON_FAILURE_MESSAGE "install libxxhash-dev (Debian, Ubuntu) or set CMAKE_PREFIX_PATH")
mark_as_advanced(Xxhash_INCLUDE_DIR Xxhash_LIBRARY)

if(Xxhash_FOUND AND NOT TARGET Xxhash::Xxhash)
  add_library(Xxhash::Xxhash UNKNOWN IMPORTED)
  set_target_properties(Xxhash::Xxhash PROPERTIES IMPORTED_LOCATION "${Xxhash_LIBRARY}" INTERFACE_INCLUDE_DIRECTORIES
                                                                             "${Xxhash_INCLUDE_DIR}")
endif()

# Some builds of the library choose AVX2 or AVX-512 bodies at run time. Sets Xxhash_X86_DISPATCH where this one does.
if(Xxhash_FOUND AND NOT DEFINED Xxhash_X86_DISPATCH)
  include(CheckCXXSourceCompiles)
  set(CMAKE_REQUIRED_LIBRARIES Xxhash::Xxhash)
  check_cxx_source_compiles("#include <xxh_x86dispatch.h>
int main() { return static_cast<int>(XXH3_64bits_dispatch(\"\", 0)); }" Xxhash_X86_DISPATCH)
  unset(CMAKE_REQUIRED_LIBRARIES)
endif()
