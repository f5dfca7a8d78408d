#include "corpus.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <forebay/base/error.hpp>
#include <string>
#include <system_error>

#include "random.hpp"

namespace train_gpt {
namespace fs = std::filesystem;
namespace {

/// A file open for reading.
class open_file {
 public:
  explicit open_file(const fs::path& path) : path_(path), descriptor_(::open(path.c_str(), O_RDONLY | O_CLOEXEC)) {
    if (descriptor_ < 0) {
      throw failure("cannot be opened", errno);
    }
  }
  ~open_file() { ::close(descriptor_); }
  open_file(const open_file&) = delete;
  open_file& operator=(const open_file&) = delete;

  void read(std::uint64_t offset, std::span<std::uint8_t> out) const {
    while (!out.empty()) {
      const ssize_t got = ::pread(descriptor_, out.data(), out.size(), static_cast<off_t>(offset));
      if (got < 0 && errno == EINTR) {
        continue;
      }
      if (got < 0) {
        throw failure("cannot be read", errno);
      }
      if (got == 0) {
        throw forebay::io_error(fmt::format("{} ends at byte {}, {} bytes early: it became shorter during the run",
                                            path_.string(), offset, out.size()),
                                0);
      }
      out = out.subspan(static_cast<std::size_t>(got));
      offset += static_cast<std::uint64_t>(got);
    }
  }

 private:
  [[nodiscard]] forebay::io_error failure(const char* what, int error_number) const {
    return {fmt::format("{} {}: {}", path_.string(), what, forebay::describe_errno(error_number)), error_number};
  }

  const fs::path& path_;
  int descriptor_;
};

[[nodiscard]] std::vector<fs::path> sorted_entries(const fs::path& folder) {
  std::vector<fs::path> entries;
  if (fs::is_directory(folder)) {
    for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
      entries.push_back(entry.path());
    }
  }
  std::sort(entries.begin(), entries.end());
  return entries;
}

}  // namespace

corpus::corpus(const std::vector<fs::path>& sources) {
  for (const fs::path& source : sources) {
    try {
      if (!fs::exists(source)) {
        throw forebay::usage_error(fmt::format("the text {} does not exist", source.string()));
      }
      fs::is_directory(source) ? add_folder(source) : add_file(source);
    } catch (const fs::filesystem_error& failure) {
      const int error_number = failure.code().value();
      throw forebay::io_error(fmt::format("the text {} cannot be read: {}", failure.path1().string(),
                                          forebay::describe_errno(error_number)),
                              error_number);
    }
  }
}

void corpus::add_file(const fs::path& file) {
  const std::uint64_t size = fs::file_size(file);
  if (size > 0) {
    files_.push_back(file);
    ends_.push_back(bytes() + size);
  }
}

void corpus::add_folder(const fs::path& folder) {
  std::vector<fs::path> found;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file()) {
      found.push_back(entry.path());
    }
  }
  std::sort(found.begin(), found.end());
  for (const fs::path& file : found) {
    add_file(file);
  }
}

void corpus::read(std::uint64_t offset, std::span<std::uint8_t> out) const {
  auto file = static_cast<std::size_t>(std::upper_bound(ends_.begin(), ends_.end(), offset) - ends_.begin());
  while (!out.empty()) {
    if (file == files_.size()) {
      throw forebay::usage_error(fmt::format("byte {} is beyond the text's {} bytes", offset, bytes()));
    }
    const std::uint64_t begin = file == 0 ? 0 : ends_[file - 1];
    const std::size_t count = std::min<std::uint64_t>(out.size(), ends_[file] - offset);
    open_file(files_[file]).read(offset - begin, out.first(count));
    out = out.subspan(count);
    offset += count;
    ++file;
  }
}

void corpus::check_holds(std::size_t context) const {
  if (bytes() < context + 1) {
    throw forebay::usage_error(fmt::format("the text has {} bytes in {} files; a context of {} needs at least {}",
                                           bytes(), files(), context, context + 1));
  }
}

void corpus::sample(const model_shape& shape, std::uint64_t seed, std::uint64_t step, std::uint64_t micro_batch,
                    std::span<std::uint8_t> out) const {
  check_holds(shape.context);
  const std::uint64_t key = random_bits(random_bits(random_key(seed, "text"), step), micro_batch);
  const std::size_t window = shape.context + 1;
  for (std::size_t i = 0; i < shape.batch; ++i) {
    read(random_below(key, i, bytes() - shape.context), out.subspan(i * window, window));
  }
}

fs::path default_text(const fs::path& root) {
  const std::vector<fs::path> parents{root / "usr/include/c++", root / "usr/local/include/c++"};
  for (const fs::path& parent : parents) {
    fs::path newest;
    int newest_version = -1;
    for (const fs::path& entry : sorted_entries(parent)) {
      const std::string name = entry.filename().string();
      // GCC names the folder by its version, libc++ calls it v1.
      const int version = std::atoi(name.c_str() + (name.starts_with('v') ? 1 : 0));
      if (fs::is_directory(entry) && version > newest_version) {
        newest = entry;
        newest_version = version;
      }
    }
    if (!newest.empty()) {
      return newest;
    }
  }
  throw forebay::error(
      fmt::format("no text to train on: looked for C++ headers in {} and {}; install a C++ compiler "
                  "or name files or folders with --data",
                  parents[0].string(), parents[1].string()));
}

}  // namespace train_gpt
