# Finds oneDNN for the CPU and defines Onednn::Onednn. Its own CMake package is not used: where the distribution built
# it with OpenCL, that package demands the OpenCL development files of everyone.
find_path(Onednn_INCLUDE_DIR NAMES oneapi/dnnl/dnnl.hpp dnnl.hpp)
find_library(Onednn_LIBRARY NAMES dnnl)

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(
  Onednn REQUIRED_VARS Onednn_LIBRARY Onednn_INCLUDE_DIR REASON_FAILURE_MESSAGE
                                                         "install libdnnl-dev (Debian, Ubuntu) or set CMAKE_PREFIX_PATH")
mark_as_advanced(Onednn_INCLUDE_DIR Onednn_LIBRARY)

if(Onednn_FOUND AND NOT TARGET Onednn::Onednn)
  add_library(Onednn::Onednn UNKNOWN IMPORTED)
  set_target_properties(Onednn::Onednn PROPERTIES IMPORTED_LOCATION "${Onednn_LIBRARY}" INTERFACE_INCLUDE_DIRECTORIES
                                                                                        "${Onednn_INCLUDE_DIR}")
endif()
