#include <cerrno>
#include <cstring>

#include <unistd.h>

#include <forebay/base/contract.hpp>

#include "testing/detail/old_bytes.hpp"

namespace forebay::testing::detail {
namespace {

constexpr byte_count largest_sector = 4096;

}  // namespace

old_bytes::old_bytes(const io::interceptor::transfer& t)
    : bytes_(static_cast<std::byte*>(std::aligned_alloc(largest_sector, align_up(t.bytes, largest_sector)))) {
  FOREBAY_ASSERT(bytes_ != nullptr);
  if (t.kind == io::operation_kind::read) {
    std::memcpy(bytes_.get(), t.memory, t.bytes);
    return;
  }
  std::memset(bytes_.get(), 0, t.bytes);
  byte_count done = 0;
  while (done < t.bytes) {
    const ssize_t got = ::pread(t.file, bytes_.get() + done, t.bytes - done, static_cast<off_t>(t.offset + done));
    if (got <= 0 && !(got < 0 && errno == EINTR)) {
      return;
    }
    done += got > 0 ? static_cast<byte_count>(got) : 0;
  }
}

void old_bytes::put_back(const io::interceptor::transfer& t, byte_count keep, byte_count moved) const noexcept {
  if (t.kind == io::operation_kind::read) {
    std::memcpy(t.memory + keep, bytes_.get() + keep, moved - keep);
    return;
  }
  for (byte_count done = keep; done < moved;) {
    const ssize_t put = ::pwrite(t.file, bytes_.get() + done, moved - done, static_cast<off_t>(t.offset + done));
    FOREBAY_ASSERT(put > 0 || errno == EINTR);
    done += put > 0 ? static_cast<byte_count>(put) : 0;
  }
}

byte_count sector_of(const io::interceptor::transfer& t) noexcept {
  byte_count unit = largest_sector;
  while (t.offset % unit != 0 || t.bytes % unit != 0) {
    unit /= 2;
  }
  return unit;
}

}  // namespace forebay::testing::detail
