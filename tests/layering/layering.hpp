#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace layering {

/// What `check_tree` found. A breach fails the test, a remark is only printed.
struct findings {
  std::vector<std::string> breaches;
  std::vector<std::string> remarks;
};

/// Reads the includes of include/, src/, tests/, bench/ and examples/ below `root` and reports, as "file:line: what":
/// - a module that includes a module which is not of a lower row;
/// - a public header that includes anything but our public headers, the C++ library and POSIX (forebay/cuda.hpp and
///   what belongs to it may include the CUDA runtime);
/// - a test, bench or example that includes a private header of a module, or (but for tests) a `detail` header;
/// - a module that includes the `detail` headers of another;
/// - a public header without `#pragma once`, a folder without README.md;
/// and remarks on the files that are longer than the style allows.
/// A file system error is thrown as `std::filesystem::filesystem_error`.
findings check_tree(const std::filesystem::path& root);

/// The check of one README: its C++ example must be the text of the example that is compiled. Reports a breach unless
/// `readme` holds the whole text of `example` in one ```cpp block.
std::vector<std::string> check_quoted_example(const std::filesystem::path& readme,
                                              const std::filesystem::path& example);

}  // namespace layering
