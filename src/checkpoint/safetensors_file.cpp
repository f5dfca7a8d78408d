#include <forebay/checkpoint/safetensors.hpp>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include <fmt/format.h>

#include <forebay/base/error.hpp>

#include "checkpoint/detail/safetensors_header.hpp"

namespace forebay {

struct safetensors_file::impl {
  explicit impl(std::filesystem::path file_path) : path(std::move(file_path)) {}
  impl(const impl&) = delete;
  impl& operator=(const impl&) = delete;
  ~impl() {
    if (fd >= 0) {
      ::close(fd);
    }
  }

  [[noreturn]] void fail(const char* what, byte_count offset, int error_number) const {
    throw io_error(fmt::format("can't {} '{}' at byte {}: {}", what, path.string(), offset,
                               error_number == 0 ? "the file ends" : describe_errno(error_number)),
                   error_number);
  }

  void read(byte_count offset, std::span<std::byte> out) const {
    while (!out.empty()) {
      const ssize_t result = ::pread(fd, out.data(), out.size(), static_cast<off_t>(offset));
      if (result < 0 && errno == EINTR) {
        continue;
      }
      if (result <= 0) {
        fail("read", offset, result < 0 ? errno : 0);
      }
      offset += static_cast<byte_count>(result);
      out = out.subspan(static_cast<std::size_t>(result));
    }
  }

  void open() {
    fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    struct stat status {};
    if (fd < 0 || ::fstat(fd, &status) != 0) {
      fail("open", 0, errno);
    }
    const auto file_bytes = static_cast<byte_count>(status.st_size);
    std::array<std::byte, 8> prefix{};
    if (!S_ISREG(status.st_mode) || file_bytes < prefix.size()) {
      throw corruption_error(fmt::format(
          "'{}' is not a valid safetensors file: it {}", path.string(),
          S_ISREG(status.st_mode) ? fmt::format("has only {} bytes", file_bytes) : "is not a regular file"));
    }
    read(0, prefix);
    std::string text(detail::safetensors_header_bytes(path, prefix, file_bytes), ' ');
    read(prefix.size(), std::as_writable_bytes(std::span(text)));
    header = detail::parse_safetensors_header(path, text, prefix.size() + text.size(), file_bytes);
  }

  std::filesystem::path path;
  int fd = -1;
  detail::safetensors_header header;
};

safetensors_file::safetensors_file(const std::filesystem::path& path) : impl_(std::make_unique<impl>(path)) {
  impl_->open();
}
safetensors_file::~safetensors_file() = default;
safetensors_file::safetensors_file(safetensors_file&&) noexcept = default;
safetensors_file& safetensors_file::operator=(safetensors_file&&) noexcept = default;

const std::vector<safetensors_entry>& safetensors_file::entries() const noexcept { return impl_->header.entries; }
const safetensors_metadata& safetensors_file::metadata() const noexcept { return impl_->header.metadata; }

const safetensors_entry* safetensors_file::find(const std::string& name) const noexcept {
  const auto& all = entries();
  const auto found = std::find_if(all.begin(), all.end(), [&](const safetensors_entry& e) { return e.name == name; });
  return found == all.end() ? nullptr : &*found;
}

void safetensors_file::read(const safetensors_entry& entry, byte_count offset, std::span<std::byte> out) const {
  if (offset > entry.bytes || out.size() > entry.bytes - offset) {
    throw usage_error(fmt::format("bytes {} to {} of tensor '{}' were asked for; it has {}", offset,
                                  offset + out.size(), entry.name, entry.bytes));
  }
  impl_->read(entry.offset + offset, out);
}

tensor_source safetensors_file::source(const safetensors_entry& entry) const {
  return {entry.name, entry.type, entry.shape,
          [self = impl_.get(), at = entry.offset](byte_count offset, std::span<std::byte> out) {
            self->read(at + offset, out);
          }};
}

}  // namespace forebay
